// A C++ program with an exported kernel: no Python in it, and none where it runs. From the root of a checkout:
//
//     tilewright translate samples/matmul.py:matmul_kernel --num-warps 8 --host -o matmul.cu --header matmul.h --signature "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, i32:1, i32:16, i32:1, 128, 256, 64, 8, ''"
//     nvcc -O3 -gencode arch=compute_90a,code=sm_90a -I. matmul.cu samples/matmul_main.cpp -o matmul
//     ./matmul
#include "matmul.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(cudaError_t status)
{
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
    std::exit(1);
}

int main()
{
    const int M = 1040, N = 720, K = 528;   // row-major matrices [M, K], [K, N], [M, N]
    std::vector<half> a(M * K), b(K * N), c(M * N);
    for (int i = 0; i < M * K; ++i) a[i] = __float2half((i * 7 % 31 - 15) / 16.0f);
    for (int i = 0; i < K * N; ++i) b[i] = __float2half((i * 5 % 29 - 14) / 16.0f);

    half *a_ptr, *b_ptr, *c_ptr;
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    check(cudaMalloc(&a_ptr, a.size() * sizeof(half)));
    check(cudaMalloc(&b_ptr, b.size() * sizeof(half)));
    check(cudaMalloc(&c_ptr, c.size() * sizeof(half)));
    check(cudaMemcpyAsync(a_ptr, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice, stream));
    check(cudaMemcpyAsync(b_ptr, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice, stream));

    // The strides along rows are constants of the text (":1" in the signature), as are the blocks.
    const dim3 programs((M + 127) / 128 * ((N + 255) / 256));   // one per tile of BLOCK_M x BLOCK_N
    check(launch_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, K, N, N, programs, stream));

    check(cudaMemcpyAsync(c.data(), c_ptr, c.size() * sizeof(half), cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    double worst = 0;
    for (int row = 0; row < M; row += 13) {
        for (int col = 0; col < N; ++col) {
            double sum = 0;
            for (int k = 0; k < K; ++k) sum += double(__half2float(a[row * K + k])) * __half2float(b[k * N + col]);
            worst = std::fmax(worst, std::fabs(sum - __half2float(c[row * N + col])) / std::fmax(std::fabs(sum), 1.0));
        }
    }
    std::printf("largest difference from float64: %.1e\n", worst);
    for (half* one : {a_ptr, b_ptr, c_ptr}) check(cudaFree(one));
    check(cudaStreamDestroy(stream));
    return worst < 1e-3 ? 0 : 1;
}
