/* The driver's library, as far as the sampler calls it: memory of a device is memory of the host. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGet(int *device, int number) { *device = number; return number ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)8; return device; }
int cuCtxSetCurrent(void *context) { return context ? 0 : 1; }
int cuCtxSynchronize(void) { return 0; }
int cuMemAlloc_v2(uint64_t *place, size_t size) { *place = (uint64_t)calloc(1, size); return 0; }
int cuMemFree_v2(uint64_t place) { free((void *)place); return 0; }
int cuMemHostAlloc(void **place, size_t size, unsigned flags) { *place = calloc(1, size); return flags ? 1 : 0; }
int cuMemFreeHost(void *place) { free(place); return 0; }
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size) { memcpy((void *)to, (void *)from, size); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, void *from, size_t size) { memcpy((void *)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)from, size); return 0; }
