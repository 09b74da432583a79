/* A libnvidia-ml.so.1 with four GPUs, for the traps of pynvml: a whole one, one that may not be opened, one split by MIG
 * with holes between its instances, and one that is lost. Tests turn the knobs below. */
#include <string.h>

enum {
    SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15
};

/* knobs */
int init_result = SUCCESS;
int memory_result = SUCCESS;
int processes_result = SUCCESS;
int process_count = 1;
int process_memory_unknown = 0;
int graphics_pid = 0;
int samples_result = SUCCESS;
int utilisation_result = SUCCESS; /* of a call that asks how many there are, when it is not the usual answer */
int utilisation_grows = 0;        /* so many times the list is larger at the second call */
int utilisation_percent = 50;
int instances_gone = 0;
int name_has_profile = 1;

/* what was asked for */
unsigned long long samples_since = 0;
unsigned long long utilisation_since = 0;

typedef struct { int gpu; int position; } device;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;
typedef struct { unsigned pid; unsigned long long memory; unsigned gi, ci; } process_info;
typedef struct { unsigned long long time; union { unsigned u; unsigned long long ull; double d; } value; } sample;
typedef struct { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; } process_use;
typedef struct { unsigned sms, copy, decoders, encoders, jpeg, ofa, gi_slices, ci_slices; unsigned long long memory_mib; } attributes;

static device gpus[] = {{0, -1}, {1, -1}, {2, -1}, {3, -1}};
static device instances[] = {{2, 1}, {2, 4}};
static const char *gpu_uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};
static const char *instance_uuids[] = {"MIG-1", "MIG-4"};

int nvmlInitWithFlags(unsigned flags) { (void)flags; return init_result; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "stub"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { (void)size; strcpy(text, "580.95.05"); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 4; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
    if (index == 1) return NO_PERMISSION;
    *found = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **found) {
    for (int i = 0; i < 4; i++)
        if (!strcmp(uuid, gpu_uuids[i])) { *found = &gpus[i]; return SUCCESS; }
    for (int i = 0; i < 2; i++)
        if (!instances_gone && !strcmp(uuid, instance_uuids[i])) { *found = &instances[i]; return SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(device *d, char *text, unsigned size) {
    (void)size;
    if (d->gpu == 3) return GPU_IS_LOST;
    strcpy(text, d->position < 0 ? gpu_uuids[d->gpu] : instance_uuids[d == &instances[1]]);
    return SUCCESS;
}

int nvmlDeviceGetName(device *d, char *text, unsigned size) {
    (void)size;
    strcpy(text, "NVIDIA H200");
    if (d->position >= 0 && name_has_profile) strcat(text, " MIG 1g.18gb");
    return SUCCESS;
}

int nvmlDeviceGetAttributes_v2(device *d, attributes *a) {
    if (d->position < 0) return NOT_SUPPORTED;
    memset(a, 0, sizeof *a);
    a->gi_slices = 3;
    a->memory_mib = 71168;
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(device *d, pci_info *info) {
    memset(info, 0, sizeof *info);
    strcpy(info->bus_id, "00000000:01:00.0");
    info->bus_id[10] += d->gpu;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device *d, memory_info *info) {
    if (memory_result) return memory_result;
    info->total = d->position < 0 ? 143771ULL << 20 : 16384ULL << 20;
    info->used = (500ULL << 20) + 1;
    info->free = info->total - info->used;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
    if (d->gpu == 0) return NOT_SUPPORTED;
    *current = *pending = 1;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *count) { *count = d->gpu == 2 ? 7 : 0; return SUCCESS; }

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **found) {
    (void)d;
    for (int i = 0; i < 2; i++)
        if (!instances_gone && instances[i].position == (int)index) { *found = &instances[i]; return SUCCESS; }
    return NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(device *d, unsigned *id) { *id = 10 + d->position; return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(device *d, unsigned *id) { (void)d; *id = 0; return SUCCESS; }

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned *count, process_info *list) {
    (void)d;
    if (processes_result) return processes_result;
    if (*count < (unsigned)process_count) { *count = process_count; return INSUFFICIENT_SIZE; }
    *count = process_count;
    for (int i = 0; i < process_count; i++) {
        process_info p = {1000 + i, process_memory_unknown ? ~0ULL : 400ULL << 20, ~0u, ~0u};
        list[i] = p;
    }
    return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, unsigned *count, process_info *list) {
    (void)d;
    if (!graphics_pid) { *count = 0; return SUCCESS; }
    if (*count < 1) { *count = 1; return INSUFFICIENT_SIZE; }
    *count = 1;
    process_info p = {graphics_pid, 10ULL << 20, ~0u, ~0u};
    list[0] = p;
    return SUCCESS;
}

int nvmlDeviceGetSamples(device *d, int kind, unsigned long long since, int *type, unsigned *count, sample *list) {
    (void)kind;
    samples_since = since;
    if (d->position >= 0) return NOT_SUPPORTED;
    if (samples_result) return samples_result;
    *type = 1; /* unsigned int */
    if (!list) { *count = 120; return SUCCESS; } /* the size of the ring, not of the answer */
    unsigned values[] = {0, 2147483632u, 1};
    *count = 3;
    for (int i = 0; i < 3; i++) {
        memset(&list[i], 0, sizeof list[i]);
        list[i].time = since + 10 * (i + 1);
        list[i].value.u = values[i];
    }
    return SUCCESS;
}

int nvmlDeviceGetProcessUtilization(device *d, process_use *list, unsigned *count, unsigned long long since) {
    utilisation_since = since;
    if (d->position >= 0) return NOT_SUPPORTED;
    if (!list) {
        if (utilisation_result) { *count = 0; return utilisation_result == -1 ? SUCCESS : utilisation_result; }
        *count = 1;
        return INSUFFICIENT_SIZE;
    }
    if (utilisation_grows > 0) { utilisation_grows--; *count = 5; return INSUFFICIENT_SIZE; }
    *count = 1;
    process_use use = {1000, since + 1, utilisation_percent, 0, 0, 0};
    list[0] = use;
    return SUCCESS;
}
