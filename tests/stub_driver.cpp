// A CUDA driver that runs nothing: it answers what the launch path asks, and writes every launch to $STUB_LOG. For tests and
// benchmarks of everything in front of the driver, on machines without a GPU.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Attribute {
    int which, unused, value, rest[15];
};

struct Config {
    unsigned grid[3], block[3], shared;
    uint64_t stream;
    const Attribute* attributes;
    unsigned count;
};

// Device d has the context FIRST + d; a module and its function belong to the context that was current when it was loaded.
constexpr uint64_t FIRST = 0x1000, MODULES = 0x100000;
thread_local uint64_t contexts[16] = {FIRST};
thread_local int depth = 0;

int devices() {
    const char* wanted = std::getenv("STUB_DEVICES");
    return wanted ? std::atoi(wanted) : 1;
}
int nothing() { return 0; }
int set_one(int* value) { *value = 1; return 0; }
int count(int* value) { *value = devices(); return 0; }
int device(int* value, int number) { *value = number; return number < devices() ? 0 : 101; }
int context_of(uint64_t* value, int number) { *value = FIRST + number; return 0; }
int version(int* value) { *value = 13000; return 0; }
int current(uint64_t* context) { *context = contexts[depth]; return 0; }
int current_device(int* value) { *value = static_cast<int>(contexts[depth] - FIRST); return contexts[depth] ? 0 : 201; }
int set_context(uint64_t context) { contexts[depth] = context; return 0; }
int push(uint64_t context) { contexts[++depth] = context; return 0; }
int pop(uint64_t* context) { *context = contexts[depth--]; return 0; }
int load(uint64_t* module, const void*) { *module = MODULES + contexts[depth]; return contexts[depth] ? 0 : 201; }
int function_of(uint64_t* function, uint64_t module, const char*) { *function = module; return 0; }
int device_attribute(int* value, int which, int) {
    *value = which == 75 ? 9 : which == 76 ? 0 : which == 97 ? 232448 : 132;
    return 0;
}
int function_attribute(int* value, int, void*) { *value = 1024; return 0; }

// The opaque bytes: address, rank, element type, the sizes, the strides, the box, the swizzle.
int encode(unsigned char* map, int type, unsigned rank, void* address, const uint64_t* sizes, const uint64_t* strides,
           const uint32_t* box, const uint32_t*, int, int swizzle, int, int) {
    uint64_t words[16] = {reinterpret_cast<uint64_t>(address), rank, static_cast<uint64_t>(type)};
    for (unsigned i = 0; i < rank; ++i) words[3 + i] = sizes[i];
    for (unsigned i = 0; i + 1 < rank; ++i) words[8 + i] = strides[i];
    for (unsigned i = 0; i < rank && i < 3; ++i) words[12 + i] = box[i];
    words[15] = static_cast<uint64_t>(swizzle);
    std::memcpy(map, words, sizeof words);
    return 0;
}

// A line per launch: grid, block, shared bytes, stream, then $STUB_SIZES[i] bytes of each parameter in hexadecimal, then
// the attributes as "@number=value". 132 blocks fit on the device.
int launch(const Config* config, uint64_t function, void** parameters, void**) {
    if (!contexts[depth]) return 201;
    if (function > MODULES && function - MODULES != contexts[depth]) return 400;
    for (unsigned i = 0; i < config->count; ++i) {
        const bool cooperative = config->attributes[i].which == 2 && config->attributes[i].value == 1;
        if (cooperative && config->grid[0] * config->grid[1] * config->grid[2] > 132) return 720;
    }
    static const char* path = std::getenv("STUB_LOG");
    if (!path) return 0;
    char text[8192];
    int length = std::snprintf(text, sizeof text, "%u %u %u %u %u %llu", config->grid[0], config->grid[1], config->grid[2],
                               config->block[0], config->shared, static_cast<unsigned long long>(config->stream));
    const char* sizes = std::getenv("STUB_SIZES");
    for (int i = 0; sizes && *sizes; ++i) {
        char* end;
        const long bytes = std::strtol(sizes, &end, 10);
        length += std::snprintf(text + length, sizeof text - length, " ");
        for (long b = 0; b < bytes; ++b) {
            length += std::snprintf(text + length, sizeof text - length, "%02x",
                                    static_cast<unsigned char*>(parameters[i])[b]);
        }
        sizes = *end == ',' ? end + 1 : end;
    }
    for (unsigned i = 0; i < config->count; ++i) {
        length += std::snprintf(text + length, sizeof text - length, " @%d=%d", config->attributes[i].which,
                                config->attributes[i].value);
    }
    std::FILE* file = std::fopen(path, "a");
    std::fprintf(file, "%s\n", text);
    std::fclose(file);
    return 0;
}

struct Entry {
    const char* name;
    void* function;
};
#define ENTRY(name, function) {name, reinterpret_cast<void*>(function)}
const Entry TABLE[] = {
    ENTRY("cuDeviceGetCount", count), ENTRY("cuDeviceGet", device), ENTRY("cuDriverGetVersion", version),
    ENTRY("cuCtxGetCurrent", current), ENTRY("cuCtxSetCurrent", set_context), ENTRY("cuCtxGetDevice", current_device),
    ENTRY("cuDeviceGetAttribute", device_attribute), ENTRY("cuDevicePrimaryCtxRetain", context_of),
    ENTRY("cuCtxPushCurrent", push), ENTRY("cuCtxPopCurrent", pop), ENTRY("cuModuleLoadData", load),
    ENTRY("cuModuleGetFunction", function_of), ENTRY("cuFuncGetAttribute", function_attribute),
    ENTRY("cuOccupancyMaxActiveBlocksPerMultiprocessor", set_one),
    ENTRY("cuLaunchKernelEx", launch), ENTRY("cuTensorMapEncodeTiled", encode),
};

}  // namespace

extern "C" {
int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* status) {
    if (status) *status = 0;
    *function = reinterpret_cast<void*>(nothing);
    if (!std::strcmp(name, "cuGetProcAddress")) *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
    for (const Entry& entry : TABLE) {
        if (!std::strcmp(name, entry.name)) *function = entry.function;
    }
    return 0;
}
int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
int cuInit(unsigned) { return 0; }
int cuGetExportTable(const void**, const void*) { return 801; }  // asked for by NVRTC: CUDA_ERROR_NOT_SUPPORTED
}
