/* A libcuda.so.1 with one device, if CUDA_VISIBLE_DEVICES names any when cuInit is called first. Memory is a pattern, work is done at
 * once, and a write below the first page is the illegal access that ends the context. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NO_DEVICE = 100, ILLEGAL_ADDRESS = 700 };

static int first = -1, broken;
static uint32_t word;

int cuInit(unsigned flags) {
    (void)flags;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (first < 0) first = visible && *visible ? SUCCESS : NO_DEVICE;
    return first;
}
int cuDeviceGetCount(int *count) { *count = 1; return first; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return first; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &first; return first; }
int cuCtxSetCurrent(void *context) { (void)context; return SUCCESS; }
int cuModuleLoadData(void **module, const char *ptx) { *module = &first; return strstr(ptx, ".entry store") ? SUCCESS : 1; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = strcmp(name, "store") ? (void *)&first : (void *)&broken;
    return SUCCESS;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) { (void)size; *address = 1 << 21; return broken; }
int cuMemFree_v2(uint64_t address) { (void)address; return broken; }
int cuMemsetD32_v2(uint64_t address, unsigned value, size_t count) { (void)address; (void)count; word = value; return broken; }
int cuMemcpyDtoH_v2(void *room, uint64_t address, size_t size) {
    (void)address;
    for (size_t i = 0; i < size / 4; i++) ((uint32_t *)room)[i] = word;
    return broken;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    if (function == &broken && *(uint64_t *)arguments[0] < 4096) broken = ILLEGAL_ADDRESS;
    return SUCCESS;
}
int cuCtxSynchronize(void) { return broken; }
