// For programs that test exported kernels: arrays on the GPU that come from files and go back to them, and streams.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

inline void check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s (%s)\n", what, cudaGetErrorName(status), cudaGetErrorString(status));
    std::exit(2);
}
#define CHECK(call) check(call, #call)

// The bytes of a file on the GPU, `offset` bytes behind an aligned address; behind them lie bytes that must stay.
class DeviceArray {
public:
    DeviceArray(const std::string& path, size_t offset) : offset_(offset)
    {
        std::ifstream file(path, std::ios::binary);
        if (!file) check(cudaErrorFileNotFound, path.c_str());
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
        size_ = bytes_.size();
        bytes_.insert(bytes_.begin(), offset_, CANARY);
        bytes_.insert(bytes_.end(), BEHIND, CANARY);
        CHECK(cudaMalloc(&memory_, bytes_.size()));
        CHECK(cudaMemcpy(memory_, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice));
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { cudaFree(memory_); }

    template <typename T> operator T*() const { return reinterpret_cast<T*>(memory_ + offset_); }

    // Writes what the array holds now. A byte that changed beside it ends the program.
    void write(const std::string& path)
    {
        CHECK(cudaMemcpy(bytes_.data(), memory_, bytes_.size(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < bytes_.size(); ++i) {
            const bool inside = i >= offset_ && i < offset_ + size_;
            if (!inside && bytes_[i] != CANARY) check(cudaErrorIllegalAddress, path.c_str());
        }
        std::ofstream(path, std::ios::binary).write(bytes_.data() + offset_, static_cast<std::streamsize>(size_));
    }

private:
    static constexpr char CANARY = 0x5a;
    static constexpr size_t BEHIND = EXACT ? 0 : 256;
    size_t offset_, size_ = 0;
    std::vector<char> bytes_;
    char* memory_ = nullptr;
};

// A stream that does not wait for the default one.
struct Stream {
    Stream() { CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream); }
    operator cudaStream_t() const { return stream; }
    cudaStream_t stream = nullptr;
};
