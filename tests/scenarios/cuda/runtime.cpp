// Runs the blocks of a kernel one after another, the threads of a block as fibers, which run until they wait.
// Tensors lie in memory of their own meanwhile, before and behind which is none.
#include "waiting.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include <vector>

namespace {
constexpr size_t STACK = 256 << 10;

struct Fiber {
    jmp_buf where;
    ucontext_t context;
    bool started;
};

Fiber fibers[MOST_THREADS];
std::vector<int> idle;
std::vector<std::pair<void*, uint64_t>> shared_arrays;
char *stacks, alternate[64 << 10];
jmp_buf home;
void (*run_thread)();
int current, turn;
bool backward;
volatile bool inside;
pthread_t launching;
double limit_s;

int in_turn(int place) { return backward ? count - 1 - place : place; }

[[noreturn]] void give_up() {
    inside = false;
    _longjmp(home, 2);
}

void wait(Wait what) {
    threads[current].wait = what;
    if (!_setjmp(fibers[threads[current].fiber].where)) _longjmp(home, 1);
}

// The next one in turn that has not begun: the fiber of one that ended takes it on, since switches cost the most.
int next_to_begin() {
    if (turn + 1 >= count) return -1;
    int thread = in_turn(turn + 1);
    return threads[thread].wait == RUNS && threads[thread].fiber < 0 ? thread : -1;
}

void run_fiber() {
    for (;;) {
        run_thread();
        int next = next_to_begin();
        if (next < 0) {
            wait(ENDED);
            continue;
        }
        threads[current].wait = ENDED;
        std::swap(threads[next].fiber, threads[current].fiber);
        current = next, turn++;
        threadIdx = index_of(next);
    }
}

// Whether the thread went on until it waits or ended; not where it failed.
bool resume(int thread) {
    Thread& it = threads[thread];
    if (it.fiber < 0) {
        it.fiber = idle.back();
        idle.pop_back();
    }
    Fiber& fiber = fibers[it.fiber];
    current = thread;
    threadIdx = index_of(thread);
    inside = true;
    int came_back = _setjmp(home);
    if (came_back == 0) {
        if (fiber.started) _longjmp(fiber.where, 1);
        fiber.started = true;
        getcontext(&fiber.context);
        fiber.context.uc_stack = {stacks + it.fiber * STACK + page, 0, STACK - page};
        makecontext(&fiber.context, run_fiber, 0);
        setcontext(&fiber.context);
    }
    inside = false;
    if (came_back == 2) return false;
    if (threads[current].wait == ENDED) {
        idle.push_back(threads[current].fiber);
        threads[current].fiber = -1;
    }
    return true;
}

bool run_block() {
    shared_arrays.clear();
    for (int thread = 0; thread < count; thread++) threads[thread] = {RUNS, -1};
    for (;;) {
        for (turn = 0; turn < count; turn++) {
            int thread = in_turn(turn);
            if (threads[thread].wait == RUNS && !resume(thread)) return false;
        }
        if (first_that(AT_BARRIER) < 0 && first_that(AT_WARP) < 0) return true;
        if (!release_warps() && !release_barrier()) return false;
    }
}

void on_signal(int signal, siginfo_t* info, void*) {
    if (signal == SIGVTALRM) {
        if (!pthread_equal(pthread_self(), launching)) pthread_kill(launching, signal);
        if (!inside || !pthread_equal(pthread_self(), launching)) return;
        say_where(current);
        say(" is still running after %g s", limit_s);
        give_up();
    }
    if (!inside || !pthread_equal(pthread_self(), launching)) {
        ::signal(signal, SIG_DFL);  // not ours: it happens again
        return;
    }
    say_where(current);
    say(signal == SIGFPE ? " divides by zero" : " reads or writes where no memory is");
    if (signal != SIGFPE) say_near((const char*)info->si_addr);
    give_up();
}

bool run_blocks() {
    uint64_t total = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    for (uint64_t place = 0; place < total; place++) {
        uint64_t block = backward ? total - 1 - place : place;
        uint64_t row = block / gridDim.x;
        blockIdx = {(unsigned)(block % gridDim.x), (unsigned)(row % gridDim.y), (unsigned)(row / gridDim.y)};
        if (!run_block()) return false;
    }
    return true;
}

// As run_blocks, where faults and the end of the time, which is the processor's, are caught.
bool run_caught() {
    constexpr int CAUGHT[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
    struct sigaction ours = {}, before[4];
    stack_t stack = {alternate, 0, sizeof(alternate)}, stack_before;
    time_t whole = (time_t)limit_s;
    suseconds_t rest = (suseconds_t)((limit_s - (double)whole) * 1e6);
    itimerval limit = {{0, 100000}, {whole, rest}}, none = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    launching = pthread_self();
    sigaltstack(&stack, &stack_before);
    for (int i = 0; i < 4; i++) sigaction(CAUGHT[i], &ours, &before[i]);
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
    bool ran = run_blocks();
    setitimer(ITIMER_VIRTUAL, &none, nullptr);
    for (int i = 0; i < 4; i++) sigaction(CAUGHT[i], &before[i], nullptr);
    if (stack_before.ss_flags & SS_DISABLE) stack_before.ss_size = MINSIGSTKSZ;
    sigaltstack(&stack_before, nullptr);
    return ran;
}
}  // namespace

extern "C" {
int gpulab_barrier(int predicate, int line, int* all) {
    threads[current].predicate = predicate, threads[current].line = line;
    wait(AT_BARRIER);
    uint64_t value = threads[current].value;
    if (all) *all = (int)(value & 1);
    return (int)(value >> 1);
}

uint64_t gpulab_warp(unsigned mask, int gather, uint64_t value, int source, int line) {
    Thread& it = threads[current];
    it.mask = mask, it.gather = gather, it.value = value, it.source = source, it.line = line;
    if (!(mask >> current % LANES & 1)) {
        say_where(current);
        say(" is not in the mask %#x of line %d", mask, line);
        give_up();
    }
    wait(AT_WARP);
    return threads[current].value;
}

int gpulab_lane() { return current % LANES; }

unsigned gpulab_active() {
    unsigned mask = 0;
    for (int thread = current / LANES * LANES; thread < std::min(count, (current / LANES + 1) * LANES); thread++)
        mask |= (unsigned)(threads[thread].wait != ENDED) << thread % LANES;
    return mask;
}

// The first thread of a block that comes to an array of shared memory finds nothing of the block before.
void gpulab_shared(void* array, uint64_t bytes) {
    for (auto& [known, size] : shared_arrays)
        if (known == array) return;
    shared_arrays.push_back({array, bytes});
    memset(array, POISON, bytes);
}

void* gpulab_dynamic_shared() { return dynamic_shared; }

void gpulab_misaligned(const void* address, uint64_t alignment, int line) {
    say_where(current);
    const char* said = " reads or writes %d bytes at once on line %d, at an address that is no multiple of that";
    say(said, (int)alignment, line);
    give_up();
}

long long gpulab_clock() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void gpulab_trap(int line) {
    say_where(current);
    say(" trapped on line %d", line);
    give_up();
}

// What g++ -fsanitize=alignment,bounds,integer-divide-by-zero calls.
struct Place { const char* file; uint32_t line, column; };
struct Type { uint16_t kind, info; char name[]; };
struct Mismatch { Place place; Type* type; unsigned char log_alignment, kind; };
struct Bounds { Place place; Type *array, *index; };

void __ubsan_handle_type_mismatch_v1(Mismatch* data, void* address) {
    gpulab_misaligned(address, 1ull << data->log_alignment, (int)data->place.line);
}

void __ubsan_handle_out_of_bounds(Bounds* data, void* index) {
    say_where(current);
    say(" takes element %ld of an array of %s on line %u", (long)(intptr_t)index, data->array->name, data->place.line);
    give_up();
}

void __ubsan_handle_divrem_overflow(Place* place, void*, void*) {
    say_where(current);
    say(" divides by zero on line %u", place->line);
    give_up();
}

// What a launch is; `of` has the number of the storage in which an argument lies, or -1 for a number.
struct Launch {
    void (*(*bind)(const uint64_t*))();
    unsigned grid[3], block[3];
    uint64_t shared_bytes;
    Storage* storages;
    const int* of;
    uint64_t* values;
    int storage_count, value_count, backward;
    double limit_s;
};

// What went wrong, or nothing.
const char* gpulab_launch(const Launch* it) {
    message[0] = 0;
    backward = it->backward, limit_s = it->limit_s;
    storages = it->storages, storage_count = it->storage_count;
    gridDim = {it->grid[0], it->grid[1], it->grid[2]}, blockDim = {it->block[0], it->block[1], it->block[2]};
    count = (int)(blockDim.x * blockDim.y * blockDim.z);
    if (!stacks) {
        constexpr int KIND = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        stacks = (char*)mmap(nullptr, MOST_THREADS * STACK, PROT_READ | PROT_WRITE, KIND, -1, 0);
        for (int i = 0; i < MOST_THREADS; i++) mprotect(stacks + i * STACK, page, PROT_NONE);
        for (int i = MOST_THREADS; i-- > 0;) idle.push_back(i);
    }
    take_in();
    for (int i = 0; i < it->value_count; i++) {
        if (it->of[i] >= 0) it->values[i] += (uint64_t)storages[it->of[i]].placed;
    }
    dynamic_shared = it->shared_bytes ? place(it->shared_bytes, -1) : nullptr;
    run_thread = it->bind(it->values);
    if (!run_caught()) {
        idle.clear();
        for (int i = MOST_THREADS; i-- > 0;) idle.push_back(i), fibers[i].started = false;
    }
    give_back();
    if (dynamic_shared) remove(dynamic_shared, it->shared_bytes), dynamic_shared = nullptr;
    return message;
}
}
