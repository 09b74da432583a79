/* A libnvidia-ml.so.1 whose devices are what a text file says (see world.py), read anew whenever that file is replaced.
 *
 *   driver VERSION
 *   gpu UUID key=value ...                 mig UUID gpu=UUID key=value ...      process DEVICE_UUID key=value ...
 *   fail FUNCTION UUID|* CODE              hang FUNCTION UUID|*                 xid NUMBER GPU_UUID CODE GI|-1
 *   ring GPU_UUID VALUE ...                quirk NAME VALUE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10, HANG = -1
};
enum { GPUS_MAX = 16, MIGS_MAX = 64, PROCESSES_MAX = 512, FAILS_MAX = 64, XIDS_MAX = 64, RING_MAX = 120 };

typedef struct {
    char uuid[96], name[96], profile[32], parent[96];
    int gi, ci, position, placement, slices;            /* of an instance */
    int mig, pending, gpm, events;                      /* of a GPU */
    unsigned long long memory, used;                    /* MiB */
    int util, power, temperature, ecc, action, accounting;
    double engine, sm, dram;
    int ring[RING_MAX], ring_length;
} device;
typedef struct { char device[96]; int graphics, busy; unsigned pid; long long memory; } process;
typedef struct { char function[96], device[96]; int code; } fail;
typedef struct { int number, code, gi; char gpu[96]; } xid;

static device gpus[GPUS_MAX], migs[MIGS_MAX];
static process processes[PROCESSES_MAX];
static fail fails[FAILS_MAX];
static xid xids[XIDS_MAX];
static int gpu_count, mig_count, process_count, fail_count, xid_count;
static int empty_success, grows, sample_pid, last_xid, calls_made, samples_held, session, stale;
static int stale_error = 999; /* of the sessions before a driver was loaded anew */
static char driver[80];
static struct stat last_seen;

unsigned long long stub_samples_since, stub_utilisation_since; /* what was asked for */

/* --- the file ----------------------------------------------------------------------------------------------------------- */

static const char *value_of(const char *line, const char *key, const char *otherwise, char *room, size_t size) {
    char wanted[40];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *found = strstr(line, wanted);
    if (!found) return otherwise;
    found += strlen(wanted);
    size_t length = strcspn(found, " \n");
    snprintf(room, size, "%.*s", (int)length, found);
    for (char *c = room; *c; c++)
        if (*c == '_') *c = ' ';
    return room;
}

static double number_of(const char *line, const char *key, double otherwise) {
    char room[64];
    const char *text = value_of(line, key, NULL, room, sizeof room);
    return text ? atof(text) : otherwise;
}

static void read_device(device *d, const char *line, const char *uuid) {
    char room[96];
    memset(d, 0, sizeof *d);
    strcpy(d->uuid, uuid);
    strcpy(d->name, value_of(line, "name", "NVIDIA H200", room, sizeof room));
    strcpy(d->parent, value_of(line, "gpu", "", room, sizeof room));
    snprintf(d->profile, sizeof d->profile, "%s", value_of(line, "profile", "", room, sizeof room));
    d->gi = (int)number_of(line, "gi", -1);
    d->ci = (int)number_of(line, "ci", 0);
    d->position = (int)number_of(line, "position", 0);
    d->placement = (int)number_of(line, "placement", 0);
    d->slices = (int)number_of(line, "slices", 1);
    d->mig = (int)number_of(line, "mig", -1);
    d->pending = (int)number_of(line, "pending", d->mig);
    d->gpm = (int)number_of(line, "gpm", 0);
    d->events = (int)number_of(line, "events", 1);
    d->memory = (unsigned long long)number_of(line, "memory", 143771);
    d->used = (unsigned long long)number_of(line, "used", 0);
    d->util = (int)number_of(line, "util", 0);
    d->power = (int)number_of(line, "power", 75000);
    d->temperature = (int)number_of(line, "temperature", 30);
    d->ecc = (int)number_of(line, "ecc", 0);
    d->action = (int)number_of(line, "action", 0);
    d->accounting = (int)number_of(line, "accounting", 0);
    d->engine = number_of(line, "engine", 0);
    d->sm = number_of(line, "sm", 0);
    d->dram = number_of(line, "dram", 0);
    d->ring_length = -1;
}

static device *device_named(const char *uuid) {
    for (int i = 0; i < gpu_count; i++) if (!strcmp(gpus[i].uuid, uuid)) return &gpus[i];
    for (int i = 0; i < mig_count; i++) if (!strcmp(migs[i].uuid, uuid)) return &migs[i];
    return NULL;
}

static void read_ring(char *line, device *d) {
    d->ring_length = 0;
    strtok(line, " \n");
    strtok(NULL, " \n");
    for (char *text = strtok(NULL, " \n"); text && d->ring_length < RING_MAX; text = strtok(NULL, " \n"))
        d->ring[d->ring_length++] = atoi(text);
}

static void read_line(char *line) {
    char word[24], first[96], second[96];
    int number = 0, code = 0, gi = -1;
    if (sscanf(line, "%23s %95s", word, first) < 2) return;
    if (!strcmp(word, "driver")) snprintf(driver, sizeof driver, "%.79s", first);
    if (!strcmp(word, "gpu") && gpu_count < GPUS_MAX) read_device(&gpus[gpu_count++], line, first);
    if (!strcmp(word, "mig") && mig_count < MIGS_MAX) read_device(&migs[mig_count++], line, first);
    if (!strcmp(word, "ring") && device_named(first)) read_ring(line, device_named(first));
    if (!strcmp(word, "process") && process_count < PROCESSES_MAX) {
        process *p = &processes[process_count++];
        strcpy(p->device, first);
        p->graphics = (int)number_of(line, "graphics", 0);
        p->pid = (unsigned)number_of(line, "pid", 0);
        p->memory = (long long)number_of(line, "memory", -1);
        p->busy = (int)number_of(line, "busy", 0);
    }
    if (!strcmp(word, "fail") && fail_count < FAILS_MAX && sscanf(line, "%*s %*s %95s %d", second, &code) == 2) {
        fail *f = &fails[fail_count++];
        strcpy(f->function, first); strcpy(f->device, second); f->code = code;
    }
    if (!strcmp(word, "hang") && fail_count < FAILS_MAX && sscanf(line, "%*s %*s %95s", second) == 1) {
        fail *f = &fails[fail_count++];
        strcpy(f->function, first); strcpy(f->device, second); f->code = HANG;
    }
    if (!strcmp(word, "xid") && xid_count < XIDS_MAX && sscanf(line, "%*s %d %95s %d %d", &number, second, &code, &gi) == 4) {
        xid *x = &xids[xid_count++];
        strcpy(x->gpu, second); x->number = number; x->code = code; x->gi = gi;
    }
    if (!strcmp(word, "quirk") && !strcmp(first, "empty_success")) empty_success = 1;
    if (!strcmp(word, "quirk") && sscanf(line, "%*s grows %d", &number) == 1) grows = number;
    if (!strcmp(word, "quirk") && sscanf(line, "%*s sample_pid %d", &number) == 1) sample_pid = number;
    if (!strcmp(word, "quirk") && sscanf(line, "%*s stale %d", &number) == 1) stale = number;
    if (!strcmp(word, "quirk") && sscanf(line, "%*s stale_error %d", &number) == 1) stale_error = number;
}

static void refresh(void) {
    const char *path = getenv("GPUBROKER_TEST_NVML");
    struct stat seen;
    if (!path || stat(path, &seen)) return;
    if (seen.st_ino == last_seen.st_ino && seen.st_mtim.tv_nsec == last_seen.st_mtim.tv_nsec) return;
    last_seen = seen;
    FILE *file = fopen(path, "r");
    if (!file) return;
    char line[1024];
    gpu_count = mig_count = process_count = fail_count = xid_count = empty_success = grows = sample_pid = stale = 0;
    strcpy(driver, "580.95.05");
    while (fgets(line, sizeof line, file)) read_line(line);
    fclose(file);
}

static int enter(const char *function, const device *d) {
    refresh();
    calls_made++;
    if (session <= stale && strcmp(function, "nvmlInitWithFlags") && strcmp(function, "nvmlShutdown")) return stale_error;
    for (int i = 0; i < fail_count; i++) {
        if (strcmp(fails[i].function, function) && strcmp(fails[i].function, "*")) continue;
        if (strcmp(fails[i].device, "*") && (!d || strcmp(fails[i].device, d->uuid))) continue;
        while (fails[i].code == HANG) pause();
        return fails[i].code;
    }
    return SUCCESS;
}

#define ENTER(d) do { int refused = enter(__func__, d); if (refused) return refused; } while (0)
#define IS_INSTANCE(d) ((d) >= migs && (d) < migs + MIGS_MAX)

static unsigned long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

/* --- session and identity ------------------------------------------------------------------------------------------------ */

int stub_calls(void) { return calls_made; }
int stub_samples_held(void) { return samples_held; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; ENTER(NULL); session++; return SUCCESS; }
int nvmlShutdown(void) { ENTER(NULL); return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "stub"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { ENTER(NULL); snprintf(text, size, "%s", driver); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { ENTER(NULL); *count = gpu_count; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
    refresh();
    if (index >= (unsigned)gpu_count) return INVALID_ARGUMENT;
    ENTER(&gpus[index]);
    *found = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **found) {
    refresh();
    *found = device_named(uuid);
    ENTER(*found);
    return *found ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetUUID(device *d, char *text, unsigned size) { ENTER(d); snprintf(text, size, "%s", d->uuid); return SUCCESS; }

int nvmlDeviceGetName(device *d, char *text, unsigned size) {
    ENTER(d);
    snprintf(text, size, "%s%s%s", d->name, d->profile[0] ? " MIG " : "", d->profile);
    return SUCCESS;
}

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;
int nvmlDeviceGetPciInfo_v3(device *d, pci_info *info) {
    ENTER(d);
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", (int)(d - gpus) + 1);
    return SUCCESS;
}

typedef struct { unsigned long long total, free, used; } memory_info;
int nvmlDeviceGetMemoryInfo(device *d, memory_info *info) {
    ENTER(d);
    info->total = d->memory << 20;
    info->used = d->used << 20;
    info->free = info->total - info->used;
    return SUCCESS;
}

/* --- MIG ------------------------------------------------------------------------------------------------------------------ */

int nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
    ENTER(d);
    if (d->mig < 0) return NOT_SUPPORTED;
    *current = d->mig;
    *pending = d->pending;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *count) { ENTER(d); *count = d->mig > 0 ? 7 : 0; return SUCCESS; }

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **found) {
    ENTER(d);
    for (int i = 0; i < mig_count; i++)
        if (!strcmp(migs[i].parent, d->uuid) && migs[i].position == (int)index) { *found = &migs[i]; return SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *d, device **found) {
    ENTER(d);
    *found = device_named(d->parent);
    return *found ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetGpuInstanceId(device *d, unsigned *id) { ENTER(d); *id = d->gi; return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(device *d, unsigned *id) { ENTER(d); *id = d->ci; return SUCCESS; }

typedef struct { unsigned sms, copy, decoders, encoders, jpeg, ofa, gi_slices, ci_slices; unsigned long long memory; } attributes;
int nvmlDeviceGetAttributes_v2(device *d, attributes *a) {
    ENTER(d);
    memset(a, 0, sizeof *a);
    a->gi_slices = d->slices;
    a->memory = d->memory;
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(device *d, unsigned id, device **found) {
    ENTER(d);
    for (int i = 0; i < mig_count; i++)
        if (!strcmp(migs[i].parent, d->uuid) && migs[i].gi == (int)id) { *found = &migs[i]; return SUCCESS; }
    return NOT_FOUND;
}

typedef struct { device *gpu; unsigned id, profile, start, size; } instance_info;
int nvmlGpuInstanceGetInfo(device *instance, instance_info *info) {
    ENTER(instance);
    memset(info, 0, sizeof *info);
    info->id = instance->gi;
    info->start = instance->placement;
    return SUCCESS;
}

/* --- processes ------------------------------------------------------------------------------------------------------------ */

typedef struct { unsigned pid; unsigned long long memory; unsigned gi, ci; } process_info;

static int list(device *d, int graphics, unsigned *count, process_info *room) {
    unsigned found = 0;
    for (int i = 0; i < process_count; i++) {
        process *p = &processes[i];
        if (strcmp(p->device, d->uuid) || p->graphics != graphics) continue;
        if (room && found < *count) {
            process_info info = {p->pid, p->memory < 0 ? ~0ULL : (unsigned long long)p->memory << 20, ~0u, ~0u};
            room[found] = info;
        }
        found++;
    }
    int is_short = found > *count;
    *count = found;
    return is_short ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *n, process_info *l) { ENTER(d); return list(d, 0, n, l); }
int nvmlDeviceGetComputeRunningProcesses_v2(device *d, unsigned *n, process_info *l) { ENTER(d); return list(d, 0, n, l); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, unsigned *n, process_info *l) { ENTER(d); return list(d, 1, n, l); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(device *d, unsigned *n, process_info *l) { ENTER(d); return list(d, 1, n, l); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(device *d, unsigned *n, process_info *l) { ENTER(d); (void)l; *n = 0; return SUCCESS; }

/* --- use ------------------------------------------------------------------------------------------------------------------ */

typedef struct { unsigned long long time; union { unsigned u; unsigned long long ull; double d; } value; } sample;
int nvmlDeviceGetSamples(device *d, int kind, unsigned long long since, int *type, unsigned *count, sample *room) {
    (void)kind;
    stub_samples_since = since;
    ENTER(d);
    if (IS_INSTANCE(d) || d->mig > 0) return NOT_SUPPORTED;
    *type = 1; /* unsigned int */
    if (!room) { *count = RING_MAX; return SUCCESS; } /* the size of the ring, not of the answer */
    memset(room, 0, RING_MAX * sizeof *room);
    if (d->ring_length >= 0) {
        *count = d->ring_length;
        for (int i = 0; i < d->ring_length; i++) { room[i].time = since + 10 * (i + 1); room[i].value.u = d->ring[i]; }
        return d->ring_length ? SUCCESS : NOT_FOUND;
    }
    unsigned long long now = now_us(), period = 166667;
    unsigned found = 0;
    for (unsigned long long time = now - now % period; time > since && found < RING_MAX; time -= period) {
        room[found].time = time;
        room[found++].value.u = d->util;
    }
    *count = found;
    return found ? SUCCESS : NOT_FOUND;
}

typedef struct { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; } process_use;
int nvmlDeviceGetProcessUtilization(device *d, process_use *room, unsigned *count, unsigned long long since) {
    stub_utilisation_since = since;
    ENTER(d);
    if (IS_INSTANCE(d) || d->mig > 0) return NOT_SUPPORTED;
    unsigned found = 0;
    if (empty_success) { *count = 0; return SUCCESS; }
    if (room && grows > 0) { grows--; *count = PROCESSES_MAX; return INSUFFICIENT_SIZE; }
    for (int i = 0; i < process_count; i++) {
        process *p = &processes[i];
        if (strcmp(p->device, d->uuid) || !(p->busy || sample_pid)) continue;
        if (room && found < *count) {
            process_use use = {sample_pid ? (unsigned)sample_pid : p->pid, now_us(), p->busy, 0, 0, 0};
            room[found] = use;
        }
        found++;
    }
    if (!found) { *count = 0; return NOT_FOUND; }
    int is_short = found > *count || !room;
    *count = found;
    return is_short ? INSUFFICIENT_SIZE : SUCCESS;
}

typedef struct { unsigned version, is_supported; } gpm_support;
typedef struct { device *gpu; int gi; } gpm_sample;
typedef struct { unsigned id; int result; double value; const char *names[3]; } gpm_metric;
typedef struct { unsigned version, count; gpm_sample *first, *second; gpm_metric metrics[]; } gpm_query;

int nvmlGpmQueryDeviceSupport(device *d, gpm_support *s) { ENTER(d); s->is_supported = d->gpm; return SUCCESS; }
int nvmlGpmSampleAlloc(gpm_sample **s) { ENTER(NULL); *s = calloc(1, sizeof **s); samples_held++; return SUCCESS; }
int nvmlGpmSampleFree(gpm_sample *s) { ENTER(NULL); free(s); samples_held--; return SUCCESS; }

int nvmlGpmSampleGet(device *d, gpm_sample *s) {
    ENTER(d);
    if (!d->gpm) return NOT_SUPPORTED;
    s->gpu = d;
    s->gi = -1;
    return SUCCESS;
}

int nvmlGpmMigSampleGet(device *d, unsigned gi, gpm_sample *s) {
    ENTER(d);
    if (!d->gpm) return NOT_SUPPORTED;
    s->gpu = d;
    s->gi = (int)gi;
    return SUCCESS;
}

int nvmlGpmMetricsGet(gpm_query *q) {
    ENTER(q->second->gpu);
    if (q->version != 1 || q->first == q->second || !q->first->gpu || q->first->gi != q->second->gi) return INVALID_ARGUMENT;
    device *d = q->second->gpu;
    for (int i = 0; i < mig_count; i++)
        if (q->second->gi >= 0 && !strcmp(migs[i].parent, d->uuid) && migs[i].gi == q->second->gi) { d = &migs[i]; break; }
    for (unsigned i = 0; i < q->count; i++) {
        gpm_metric *m = &q->metrics[i];
        m->result = SUCCESS;
        m->value = m->id == 1 ? d->engine : m->id == 2 ? d->sm : m->id == 10 ? d->dram : 0;
    }
    return SUCCESS;
}

/* --- condition -------------------------------------------------------------------------------------------------------------- */

int nvmlDeviceGetPowerUsage(device *d, unsigned *mw) { ENTER(d); *mw = d->power; return SUCCESS; }
int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *c) { (void)sensor; ENTER(d); *c = d->temperature; return SUCCESS; }

int nvmlDeviceGetTotalEccErrors(device *d, int type, int counter, unsigned long long *count) {
    (void)type; (void)counter;
    ENTER(d);
    *count = d->ecc;
    return SUCCESS;
}

typedef struct { unsigned field, scope; long long time, latency; int type, result; unsigned long long value; } field_value;
int nvmlDeviceGetFieldValues(device *d, int count, field_value *values) {
    ENTER(d);
    for (int i = 0; i < count; i++) {
        values[i].result = values[i].field == 230 ? (d->action < 0 ? INVALID_ARGUMENT : SUCCESS) : NOT_SUPPORTED;
        values[i].type = 1;
        values[i].value = d->action;
    }
    return SUCCESS;
}

typedef struct { device *gpu; unsigned long long type, data; unsigned gi, ci; } event;
int nvmlEventSetCreate(int **set) {
    static int only;
    ENTER(NULL);
    for (int i = 0; i < xid_count; i++) if (xids[i].number > last_xid) last_xid = xids[i].number;
    *set = &only;
    return SUCCESS;
}
int nvmlEventSetFree(int *set) { (void)set; ENTER(NULL); return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(device *d, unsigned long long *types) { ENTER(d); *types = d->events ? 0xA : 0; return SUCCESS; }
int nvmlDeviceRegisterEvents(device *d, unsigned long long types, int *set) { (void)types; (void)set; ENTER(d); return SUCCESS; }

int nvmlEventSetWait_v2(int *set, event *e, unsigned timeout) {
    (void)set; (void)timeout;
    ENTER(NULL);
    for (int i = 0; i < xid_count; i++) {
        xid *x = &xids[i];
        if (x->number <= last_xid) continue;
        last_xid = x->number;
        event found = {device_named(x->gpu), 8, (unsigned long long)x->code, x->gi < 0 ? ~0u : (unsigned)x->gi, ~0u};
        *e = found;
        return SUCCESS;
    }
    return TIMEOUT;
}

int nvmlDeviceGetAccountingMode(device *d, int *mode) { ENTER(d); *mode = d->accounting; return SUCCESS; }
