/* standin.c - a stand-in for NVIDIA's driver library, which the real nvidia-ml-py loads, on machines without a GPU.
 *   gcc -shared -fPIC -O1 -Wl,-soname,libnvidia-ml.so.1 -o DIR/libnvidia-ml.so.1 standin.c
 *   LD_LIBRARY_PATH=DIR STANDIN=gpus=2,lost=40 python app.py
 * STANDIN is a comma list, or "@/path" to a file that is read again on every call, to change things in mid-run:
 *   gpus=N  init=CODE (18 mismatch, 9 no driver)  lost=N (code 15 after N device calls)  slow=MS (each device call)
 *   nosup=a+b+c (code 3 for: util mem power clock memclock temp reasons energy field samples pcie procs gpm)
 *   nosup also takes the number of a field value, as f185, or of a GPM metric, as g60      gpm=CODE (what nvmlGpmSampleGet returns)
 *   reasons=BITS  counter=ID (a reason's counter that grows)  procs=PID+PID  width=N (of 16 PCIe lanes)  ecc=N */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef unsigned int u32; typedef unsigned long long u64; typedef void *dev;
enum { OK = 0, BADARG = 2, NOTSUP = 3, NOTFOUND = 6, SMALL = 7, LOST = 15 };
static int calls, inited;
static u64 now_us(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); return t.tv_sec * 1000000ULL + t.tv_nsec / 1000; }
static const char *cfg(void) {
    static char buf[512]; const char *e = getenv("STANDIN");
    if (!e || e[0] != '@') return e ? e : "";
    FILE *f = fopen(e + 1, "r"); size_t n = f ? fread(buf, 1, sizeof buf - 1, f) : 0;
    if (f) fclose(f);
    while (n && (buf[n - 1] == '\n' || buf[n - 1] == ' ')) n--;
    buf[n] = 0; return buf;
}
static const char *opt(const char *key) {            /* the text after "key=", or NULL */
    size_t k = strlen(key);
    for (const char *p = cfg(); p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, key, k) && p[k] == '=') return p + k + 1;
    return NULL;
}
static long num(const char *key, long dflt) { const char *v = opt(key); return v ? strtol(v, NULL, 0) : dflt; }
static int has(const char *feat) {                   /* is feat in nosup=a+b+c ? */
    const char *v = opt("nosup"); size_t k = strlen(feat);
    while (v && *v && *v != ',') {
        size_t n = strcspn(v, "+,");
        if (n == k && !strncmp(v, feat, k)) return 1;
        v += n; if (*v == '+') v++;
    }
    return 0;
}
static int gate(const char *feat) {                  /* every device call goes through here */
    long ms = num("slow", 0), lost = num("lost", -1);
    if (!inited) return 1;                           /* NVML_ERROR_UNINITIALIZED */
    if (ms) { struct timespec t = { ms / 1000, ms % 1000 * 1000000 }; nanosleep(&t, NULL); }
    if (lost >= 0 && calls++ >= lost) return LOST;
    return feat && has(feat) ? NOTSUP : OK;
}
#define GATE(f) do { int r_ = gate(f); if (r_) return r_; } while (0)
static int put(char *d, u32 n, const char *s) { if (strlen(s) >= n) return SMALL; strcpy(d, s); return OK; }
static int idx(dev d) { return (int)(long)d - 1; }

int nvmlInitWithFlags(u32 f) { (void)f; int r = (int)num("init", OK); inited = !r; return r; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { inited = 0; return OK; }
const char *nvmlErrorString(int r) { return r == 18 ? "Driver/library version mismatch" : r == LOST ? "GPU is lost" : "stand-in error"; }
int nvmlSystemGetDriverVersion(char *s, u32 n) { return put(s, n, "999.01"); }
int nvmlSystemGetNVMLVersion(char *s, u32 n) { return put(s, n, "13.999.01"); }
int nvmlSystemGetCudaDriverVersion(int *v) { *v = 13000; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return OK; }
int nvmlDeviceGetCount_v2(u32 *n) { if (!inited) return 1; *n = (u32)num("gpus", 1); return OK; }
int nvmlDeviceGetHandleByIndex_v2(u32 i, dev *d) { if (i >= (u32)num("gpus", 1)) return BADARG; *d = (dev)(long)(i + 1); return OK; }
int nvmlDeviceGetHandleByUUID(const char *u, dev *d) { u32 i; if (sscanf(u, "GPU-stand-in-%u", &i) != 1) return NOTFOUND; return nvmlDeviceGetHandleByIndex_v2(i, d); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *b, dev *d) { u32 i; if (sscanf(b, "00000000:%x:00.0", &i) != 1) return NOTFOUND; return nvmlDeviceGetHandleByIndex_v2(i - 1, d); }
int nvmlDeviceGetIndex(dev d, u32 *i) { *i = idx(d); return OK; }
int nvmlDeviceGetName(dev d, char *s, u32 n) { GATE(NULL); (void)d; return put(s, n, "NVIDIA Stand-in H100"); }
int nvmlDeviceGetUUID(dev d, char *s, u32 n) { char b[48]; GATE(NULL); snprintf(b, 48, "GPU-stand-in-%d", idx(d)); return put(s, n, b); }
struct pci { char legacy[16]; u32 domain, bus, device, id, sub; char busid[32]; };
int nvmlDeviceGetPciInfo_v3(dev d, struct pci *p) { GATE(NULL); memset(p, 0, sizeof *p); p->bus = idx(d) + 1; sprintf(p->busid, "00000000:%02X:00.0", p->bus); return OK; }
int nvmlDeviceGetCudaComputeCapability(dev d, int *a, int *b) { GATE(NULL); (void)d; *a = 9; *b = 0; return OK; }
int nvmlDeviceGetMigMode(dev d, u32 *a, u32 *b) { (void)d; *a = *b = 0; return NOTSUP; }

int nvmlDeviceGetUtilizationRates(dev d, u32 *u) { static u32 n; GATE("util"); (void)d; u[0] = (u32)num("util", n++ * 7 % 101); u[1] = u[0] / 2; return OK; }
struct mem1 { u64 total, free, used; }; struct mem2 { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo(dev d, struct mem1 *m) { GATE("mem"); (void)d; m->total = 80ULL << 30; m->used = 12ULL << 30; m->free = m->total - m->used; return OK; }
int nvmlDeviceGetMemoryInfo_v2(dev d, struct mem2 *m) {
    GATE("mem"); (void)d; if (m->version != 0x02000028) return 25; /* ARGUMENT_VERSION_MISMATCH */
    m->total = 80ULL << 30; m->reserved = 1ULL << 29; m->used = 12ULL << 30; m->free = m->total - m->used - m->reserved; return OK;
}
int nvmlDeviceGetPowerUsage(dev d, u32 *mw) { GATE("power"); (void)d; *mw = 350000; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(dev d, u32 *mw) { GATE("power"); (void)d; *mw = 700000; return OK; }
int nvmlDeviceGetPowerManagementLimit(dev d, u32 *mw) { return nvmlDeviceGetEnforcedPowerLimit(d, mw); }
int nvmlDeviceGetClockInfo(dev d, u32 type, u32 *mhz) { GATE(type == 2 ? "memclock" : "clock"); (void)d; *mhz = type == 2 ? 2619 : 1755; return OK; }
int nvmlDeviceGetMaxClockInfo(dev d, u32 type, u32 *mhz) { GATE(type == 2 ? "memclock" : "clock"); (void)d; *mhz = type == 2 ? 2619 : 1980; return OK; }
int nvmlDeviceGetTemperature(dev d, u32 s, u32 *t) { GATE("temp"); (void)d; (void)s; *t = 61; return OK; }
struct temp { u32 version, sensor; int value; };
int nvmlDeviceGetTemperatureV(dev d, struct temp *t) { GATE("temp"); (void)d; if (t->version != 0x0100000C) return 25; t->value = 61; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(dev d, u64 *r) { GATE("reasons"); (void)d; *r = (u64)num("reasons", 0); return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(dev d, u64 *r) { return nvmlDeviceGetCurrentClocksEventReasons(d, r); }
int nvmlDeviceGetTotalEnergyConsumption(dev d, u64 *mj) { GATE("energy"); (void)d; *mj = now_us() / 1000 * 350; return OK; } /* 350 W */
int nvmlDeviceGetPcieThroughput(dev d, u32 c, u32 *kbs) { struct timespec t = { 0, 20000000 }; GATE("pcie"); (void)d; nanosleep(&t, NULL); *kbs = c ? 2048000 : 1024000; return OK; }
union val { double d; u32 ui; u64 ull; };
struct fv { u32 id, scope; long long ts, latency; u32 type; int ret; union val v; };
int nvmlDeviceGetFieldValues(dev d, int n, struct fv *f) {
    GATE("field"); (void)d;
    for (int i = 0; i < n; i++) {
        char name[16]; snprintf(name, sizeof name, "f%u", f[i].id);
        f[i].ts = (long long)now_us(); f[i].latency = 5; f[i].ret = OK; f[i].type = 1; f[i].v.ull = 0;
        if (has(name)) { f[i].ret = NOTSUP; continue; }
        switch (f[i].id) {
        case 185: f[i].v.ui = 350000; break;                       /* POWER_AVERAGE, mW */
        case 186: f[i].v.ui = 410000; break;                       /* POWER_INSTANT, mW */
        case 83: case 191: f[i].type = 3; f[i].v.ull = now_us() / 1000 * 350; break;    /* energy, mJ */
        case 197: case 198: f[i].type = 3; f[i].v.ull = now_us() * 1024; break;         /* PCIe bytes */
        case 82: f[i].v.ui = 74; break;                            /* memory temperature */
        case 269: case 270: case 271: f[i].type = 3; f[i].v.ull = num("counter", 0) == f[i].id ? now_us() * 1000 : 7; break;
        default: f[i].ret = NOTSUP;
        }
    }
    return OK;
}
struct smp { u64 ts; union val v; };
int nvmlDeviceGetSamples(dev d, u32 type, u64 since, u32 *vt, u32 *n, struct smp *s) {  /* 100 samples, 20 ms apart */
    GATE("samples"); (void)d; (void)type; *vt = 1;
    u64 last = now_us() / 20000 * 20000; u32 k = 0, want = s ? *n : 100;
    for (u64 t = last - 99 * 20000; t <= last && k < want; t += 20000)
        if (t > since) { if (s) { s[k].ts = t; s[k].v.ull = 0; s[k].v.ui = (u32)(t / 20000 % 101); } k++; }
    *n = k; return k ? OK : NOTFOUND;
}
struct proc { u32 pid; u64 mem; u32 gi, ci; };
int nvmlDeviceGetComputeRunningProcesses_v3(dev d, u32 *n, struct proc *p) {
    const char *v = opt("procs"); u32 k = 0;
    GATE("procs"); (void)d;
    while (v && *v && *v != ',') {
        char *end; u32 pid = (u32)strtol(v, &end, 10);
        if (p && k < *n) { p[k].pid = pid; p[k].mem = 1 << 30; p[k].gi = p[k].ci = 0xFFFFFFFF; }
        k++; v = *end == '+' ? end + 1 : end;
    }
    if (k > (p ? *n : 0)) { *n = k; return k ? SMALL : OK; }
    *n = k; return OK;
}
int nvmlDeviceGetCurrPcieLinkWidth(dev d, u32 *w) { GATE("pcie"); (void)d; *w = (u32)num("width", 16); return OK; }
int nvmlDeviceGetMaxPcieLinkWidth(dev d, u32 *w) { GATE("pcie"); (void)d; *w = 16; return OK; }
int nvmlDeviceGetGraphicsRunningProcesses_v3(dev d, u32 *n, void *p) { GATE("procs"); (void)d; (void)p; *n = 0; return OK; }

int nvmlDeviceGetTotalEccErrors(dev d, u32 type, u32 counter, u64 *n) { GATE("ecc"); (void)d; (void)type; (void)counter; *n = (u64)num("ecc", 0); return OK; }

#define NS(f) int nvmlDevice##f(void) { return inited ? NOTSUP : 1; }   /* asked for by nvitop and gpustat only */
NS(GetEncoderUtilization) NS(GetDecoderUtilization) NS(GetFanSpeed) NS(GetFanSpeed_v2) NS(GetPerformanceState) NS(GetPersistenceMode)
NS(GetComputeMode) NS(GetDisplayActive) NS(GetDriverModel_v2) NS(IsMigDeviceHandle) NS(GetConfComputeMemSizeInfo)

/* GPM (Hopper and newer): two samples, then metrics between them */
struct gpmsample { u64 t; };
struct gpmmetric { u32 id; int ret; double value; const char *shortName, *longName, *unit; };
struct gpmget { u32 version, n; struct gpmsample *a, *b; struct gpmmetric m[]; };
struct gpmsup { u32 version, yes; };
int nvmlGpmQueryDeviceSupport(dev d, struct gpmsup *s) { GATE(NULL); (void)d; if (s->version != 1) return 25; s->yes = !has("gpm"); return OK; }
int nvmlGpmSampleAlloc(struct gpmsample **s) { *s = calloc(1, sizeof **s); return OK; }
int nvmlGpmSampleFree(struct gpmsample *s) { free(s); return OK; }
int nvmlGpmSampleGet(dev d, struct gpmsample *s) { GATE("gpm"); (void)d; if (opt("gpm")) return (int)num("gpm", 0); s->t = now_us(); return OK; }
int nvmlGpmMetricsGet(struct gpmget *g) {
    if (g->version != 1) return 25;
    if (!g->a || !g->b || !g->a->t || !g->b->t) return BADARG;
    for (u32 i = 0; i < g->n; i++) {
        struct gpmmetric *m = &g->m[i];
        char name[16]; snprintf(name, sizeof name, "g%u", m->id);
        m->shortName = "stand-in"; m->longName = "stand-in metric"; m->unit = m->id >= 20 ? "MiB/s" : "%"; m->ret = OK;
        if (has(name)) m->ret = NOTSUP;
        else if (g->b->t < g->a->t + 100000) { m->ret = 999; m->value = 0; }  /* under 100 ms: no fresh sample */
        else if (m->id <= 13) m->value = 5.0 * m->id;
        else if (m->id == 20 || m->id == 21 || m->id == 60 || m->id == 61) m->value = 1000.0 + m->id;
        else m->ret = NOTSUP;
    }
    return OK;
}
