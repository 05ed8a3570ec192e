// Tensor maps that a kernel makes for itself.
#pragma once
#include "copy_words.h"

namespace tilewright {

// Whether a copy that is under way reads a map.
TILEWRIGHT_UNCHECKED inline bool is_read(const void* map)
{
    const auto holds = [map](const Queue& queue) TILEWRIGHT_UNCHECKED {
        const Operation* operation = queue.first;
        while (operation && operation->map != map) operation = operation->next;
        return operation != nullptr;
    };
    bool found = holds(loads_under_way);
    for (int thread = 0; thread < engine.num_threads; ++thread) found |= holds(threads_under_way[thread].stores);
    return found;
}

}  // namespace tilewright

template <int ELEMENT, int SWIZZLE_BYTES, typename T, typename Map>
TILEWRIGHT_UNCHECKED void make_tensor_map_2d(
    Map& map, Map*, const T* base, int rows, int cols, long long row_stride, int box_rows, int box_cols, TILEWRIGHT_LINE)
{
    static_assert(sizeof(Map) == sizeof(uint64_t) * 16);
    if (reinterpret_cast<uintptr_t>(&map) % sizeof(Map)) tilewright::fail("a tensor map must lie on 128 bytes", line);
    if (tilewright::is_read(&map)) tilewright::fail("a tensor map changes while a copy that reads it is under way", line);
    if (row_stride < 0) tilewright::fail("a tensor map with a negative stride", line);
    tilewright::TensorMapLayout made{};
    made.base = reinterpret_cast<uintptr_t>(base);
    made.rank = 2;
    made.element_bytes = sizeof(T);
    made.swizzle_bytes = SWIZZLE_BYTES;
    made.box[0] = box_cols, made.box[1] = box_rows;
    made.sizes[0] = cols > 0 ? cols : 0, made.sizes[1] = rows > 0 ? rows : 0;
    made.strides[0] = uint64_t(row_stride) * sizeof(T);
    __builtin_memcpy(&map, &made, sizeof made);
}
