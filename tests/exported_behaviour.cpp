// What a C++ program relies on besides right results: `program NAME` runs one check and returns 0 when it holds.
#include "device_array.h"

#include <cstring>
#include <thread>

#include <cuda.h>
#include <cuda_fp16.h>

#include "declarations.h"   // of the exported functions, as their files have them

#define EXPECT(condition) \
    if (!(condition)) { \
        std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
        std::exit(1); \
    }

// `count` numbers on the GPU that start at `first`.
static float* floats(int count, float first = 0.0f)
{
    std::vector<float> host(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) host[static_cast<size_t>(i)] = first + static_cast<float>(i % 1000);
    float* memory = nullptr;
    CHECK(cudaMalloc(&memory, sizeof(float) * host.size()));
    CHECK(cudaMemcpy(memory, host.data(), sizeof(float) * host.size(), cudaMemcpyHostToDevice));
    return memory;
}

static std::vector<float> back(const float* memory, int count)
{
    std::vector<float> host(static_cast<size_t>(count));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host.data(), memory, sizeof(float) * host.size(), cudaMemcpyDeviceToHost));
    return host;
}

// A product of matrices of ones, which are all `K`.
struct Product {
    static constexpr int M = 400, N = 336, K = 208;
    Product()
    {
        const std::vector<half> ones(static_cast<size_t>(M) * K + static_cast<size_t>(K) * N, __float2half(1.0f));
        CHECK(cudaMalloc(&a, ones.size() * sizeof(half)));
        CHECK(cudaMemcpy(a, ones.data(), ones.size() * sizeof(half), cudaMemcpyHostToDevice));
        b = a + static_cast<size_t>(M) * K;
        CHECK(cudaMalloc(&c, static_cast<size_t>(M) * N * sizeof(half)));
    }
    ~Product()
    {
        cudaFree(a);
        cudaFree(c);
    }
    cudaError_t launch(cudaStream_t stream) const
    {
        return launch_matmul_tma(a, b, c, M, N, K, K, N, N, dim3(4 * 2), stream);
    }
    void clear(cudaStream_t stream) const { CHECK(cudaMemsetAsync(c, 0xff, sizeof(half) * M * N, stream)); }
    void verify(cudaStream_t stream) const
    {
        std::vector<half> host(static_cast<size_t>(M) * N);
        CHECK(cudaMemcpyAsync(host.data(), c, host.size() * sizeof(half), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (const half one : host) EXPECT(__half2float(one) == K);
    }
    half *a = nullptr, *b = nullptr, *c = nullptr;
};

// Arguments that the text is not for, and grids that CUDA refuses, are answered and leave nothing behind.
static void errors()
{
    const int n = 5000;
    float *x = floats(n), *out = floats(n, -7.0f);
    EXPECT(launch_add_wide(x + 1, x, out, n, dim3(5), nullptr) == cudaErrorInvalidValue);
    EXPECT(launch_add_wide(x, x, out, n, dim3(0), nullptr) == cudaSuccess);
    EXPECT(launch_add_wide(x, x, out, n, dim3(5, 0), nullptr) == cudaSuccess);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(back(out, n)[3] == -4.0f);   // nothing has run
    EXPECT(launch_add_wide(x, x, out, n, dim3(5, 70000), nullptr) == cudaErrorInvalidValue ||
           cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    cudaGetLastError();
    EXPECT(launch_add_any(x + 1, x, out + 1, n - 1, dim3(10), nullptr) == cudaSuccess);
    EXPECT(back(out, n)[1] == 1.0f && back(out, n)[4] == 7.0f);

    const Product p;
    const int M = Product::M, N = Product::N, K = Product::K;
    EXPECT(launch_matmul_tma(p.a + 1, p.b, p.c, M, N, K, K, N, N, dim3(8), nullptr) == cudaErrorInvalidValue);
    EXPECT(launch_matmul_tma(p.a, p.b, p.c, M - 1, N, K, K, N, N, dim3(8), nullptr) == cudaErrorInvalidValue);
    EXPECT(launch_matmul_tma(p.a, p.b, p.c, M, N, 0, K, N, N, dim3(8), nullptr) == cudaErrorInvalidValue);
    EXPECT(launch_matmul_tma(p.a, p.b, p.c, M, N, K, -K, N, N, dim3(8), nullptr) == cudaErrorInvalidValue);
    EXPECT(launch_matmul_tma(p.a, p.b, p.c, M, N, K, K, N, N, dim3(0), nullptr) == cudaSuccess);
    EXPECT(cudaGetLastError() == cudaSuccess);
    p.clear(nullptr);
    EXPECT(p.launch(nullptr) == cudaSuccess);
    p.verify(nullptr);
    // A K of 0 is the other text's.
    EXPECT(launch_matmul_all(p.a, p.b, p.c, M, N, 0, K, N, N, dim3(8), nullptr) == cudaSuccess);
    half zero;
    CHECK(cudaMemcpy(&zero, p.c, sizeof zero, cudaMemcpyDeviceToHost));
    EXPECT(__half2float(zero) == 0.0f);
}

// An error that the program has not asked for yet is not the launch's.
static void earlier_error()
{
    const Product p;
    void* nothing = nullptr;
    EXPECT(cudaMalloc(&nothing, size_t{1} << 60) == cudaErrorMemoryAllocation);
    EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    EXPECT(p.launch(nullptr) == cudaSuccess);
    p.verify(nullptr);
}

// Many threads, each with a stream and arrays of its own.
static void threads()
{
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t) {
        all.emplace_back([] {
            const Stream stream;
            const Product p;
            for (int i = 0; i < 50; ++i) {
                p.clear(stream);
                EXPECT(p.launch(stream) == cudaSuccess);
            }
            p.verify(stream);
        });
    }
    for (std::thread& one : all) one.join();
}

// A launch becomes a node of a graph, which runs on what the arrays hold then.
static void graph()
{
    const int n = 100000;
    float *x = floats(n), *y = floats(n), *out = floats(n);
    const Product p;
    const Stream stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(launch_add_wide(x, y, out, n, dim3((n + 1023) / 1024), stream));
    CHECK(launch_add_wide(out, y, x, n, dim3((n + 1023) / 1024), stream));
    p.clear(stream);
    CHECK(p.launch(stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 4);
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(ready, stream));
    p.verify(stream);
    EXPECT(back(x, n)[999] == 999.0f * 7.0f);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));
}

// Kernels that start while the one before still runs, in a stream and in a graph.
static void dependent_launches()
{
    const int n = 3000000;
    float *x = floats(n), *y = floats(n);
    const dim3 grid((n + 1023) / 1024);
    const Stream stream;
    const auto chain = [&] {
        for (int i = 0; i < 50; ++i) {
            CHECK(launch_step(x, y, n, grid, stream));
            CHECK(launch_step(y, x, n, grid, stream));
        }
    };
    chain();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    chain();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<float> found = back(x, n);
    for (int i = 0; i < n; ++i) EXPECT(found[static_cast<size_t>(i)] == static_cast<float>(i % 1000 + 200));
}

// A reset takes back what a kernel has been allowed; the next launch asks again.
static void reset()
{
    for (int i = 0; i < 2; ++i) {
        {
            const Product p;
            p.clear(nullptr);
            CHECK(p.launch(nullptr));
            p.verify(nullptr);
        }
        CHECK(cudaDeviceReset());
    }
}

// A driver function under the signature that it had in a version of CUDA.
template <typename F> static F driver_function(const char* name, unsigned version)
{
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &status));
    EXPECT(found != nullptr);
    return reinterpret_cast<F>(found);
}

// A context beside the one that CUDA's runtime makes knows nothing of what a kernel has been allowed in that one.
static void contexts()
{
    const auto create = driver_function<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate", 3020);
    const auto destroy = driver_function<CUresult (*)(CUcontext)>("cuCtxDestroy", 4000);
    for (int i = 0; i < 3; ++i) {
        CUcontext other = nullptr;
        if (i > 0) EXPECT(create(&other, 0, 0) == CUDA_SUCCESS);
        {
            const Product p;
            p.clear(nullptr);
            CHECK(p.launch(nullptr));
            p.verify(nullptr);
        }
        if (i > 0) EXPECT(destroy(other) == CUDA_SUCCESS);
    }
}

// Every device has the kernel.
static void devices()
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    for (int device = count; device-- > 0;) {
        CHECK(cudaSetDevice(device));
        const Product p;
        p.clear(nullptr);
        CHECK(p.launch(nullptr));
        p.verify(nullptr);
    }
    std::printf("%d devices\n", count);
}

// What a kernel prints, and an assertion that fails, which only the program's next question tells.
static void prints()
{
    float* x = floats(4);
    CHECK(launch_shows(x, dim3(1), nullptr));
    CHECK(cudaDeviceSynchronize());
}

static void asserts()
{
    float* x = floats(4, 1.0f);
    CHECK(launch_asserts(x, dim3(1), nullptr));
    CHECK(cudaDeviceSynchronize());
    x = floats(4, -1.0f);
    CHECK(launch_asserts(x, dim3(1), nullptr));
    const cudaError_t status = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(status));
    EXPECT(status != cudaSuccess);
}

int main(int, char** words)
{
    const struct {
        const char* name;
        void (*check)();
    } checks[] = {{"errors", errors}, {"earlier_error", earlier_error}, {"threads", threads}, {"graph", graph},
                  {"dependent_launches", dependent_launches}, {"reset", reset}, {"contexts", contexts}, {"devices", devices},
                  {"prints", prints}, {"asserts", asserts}};
    for (const auto& one : checks) {
        if (std::strcmp(one.name, words[1]) != 0) continue;
        one.check();
        return 0;
    }
    return 3;
}
