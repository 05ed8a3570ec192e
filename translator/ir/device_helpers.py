"""The device functions that a text may hold in front of its kernel: their templates, their order, their names.

This is the only list of them. `emit/helpers.py` writes them in this order, and no variable takes one of the names.
"""

from __future__ import annotations

from ..frozen import frozen


@frozen
class DeviceHelper:
    """A template of `templates/helpers`.

    Attributes:
      template: its name, which is that of the function where `names` do not say otherwise.
      names: the names that it gives to functions and variables, as a regular expression; "" for none that a variable could
        have, as of types, which `c_names.RESERVED` lists, and of structs, whose names are free when they are chosen.
      requires: the templates that its text needs besides itself, where they are the same in every file.
    """

    template: str
    names: str
    requires: tuple[str, ...]


def _helper(template: str, names: str | None = None, requires: str = "") -> DeviceHelper:
    return DeviceHelper(template, template if names is None else names, tuple(requires.split()))


HINTS = "cg|cs|cv|wt|wb|volatile|evict_first|evict_last"
PAIRS = "half2|bfloat162"
# In the order of the file: a helper may call only helpers above it.
HELPERS = (
    _helper("packet", ""),
    _helper("start_at"),
    _helper("load_one", rf"load_({HINTS})(_byte)?"),
    _helper("load_if"),
    _helper("load_packet_kept"),
    _helper("load_packet_if", r"load_packet_if_\w+"),
    _helper("load_vec", r"load_(vec|bools)(_\w+)?"),
    _helper("store_vec", r"store_(vec|bools)(_\w+)?"),
    _helper("store_if", rf"store_if(_({HINTS}))?"),
    _helper("round_pairs", r"round_pairs(_\w+)?"),
    _helper("atomic_float", r"atomic_(max|min)_\w+"),
    _helper("atomic_bits", r"atomic_(add|max|min|and|or|xor|xchg|cas)_\w+"),
    _helper("atomic_half", r"atomic_(max|min)_\w+"),
    _helper("atomic_add_pair", r"atomic_add_vec(_\w+)?"),
    _helper("atomic_add_vec", r"atomic_add_vec(_\w+)?"),
    _helper("atomic_add_bounded", r"atomic_add_vec(_\w+)?_bounded"),
    _helper("choose"),
    _helper("wrapping", "wrap_(add|sub|mul)"),
    _helper("divide"),
    _helper("square_root"),
    _helper("power_of_two"),
    _helper("round_toward_zero"),
    _helper("sigmoid", requires="divide"),
    _helper("sigmoid_double"),
    _helper("small_pair", f"small_({PAIRS})"),
    _helper("byte_pair", f"[iu]8_({PAIRS})"),
    _helper("fp8_pair", rf"e\dm\d_({PAIRS})"),
    _helper("in_register"),
    _helper("field_pair", f"fields_({PAIRS})", "in_register"),
    _helper("pack_pair"),
    _helper("max_nan"),
    _helper("min_nan"),
    _helper("clamp_nan"),
    _helper("combine_element", ""),
    _helper("shuffle_xor"),
    _helper("combine_state", ""),
    _helper("shuffle_state", "shuffle_xor"),
    _helper("warp_reduce"),
    _helper("whole_warp", "", "warp_reduce"),
    _helper("reduce_to_first_lane"),
    _helper("warp_reduce_in_order"),
    _helper("swap_with_lane"),
    _helper("combine_warps"),
    _helper("forget"),
    _helper("swizzled"),
    _helper("count_below", r"count_(below|up_to)(_\w+)?"),
    _helper("valid_bytes"),
    _helper("shared_address"),
    _helper("tensor_map", ""),
    _helper("barrier", ""),
    _helper("mbarrier_init", requires="shared_address barrier"),
    _helper("mbarrier_init_fence"),
    _helper("mbarrier_arrive", requires="shared_address barrier"),
    _helper("mbarrier_arrive_expect", requires="shared_address barrier"),
    _helper("mbarrier_wait", requires="shared_address barrier"),
    _helper("l2_policy"),
    _helper("tma_load", r"tma_load_\dd", "shared_address barrier tensor_map"),
    _helper("tma_store", r"tma_store_\dd", "shared_address tensor_map"),
    _helper("tensor_map_prefetch", requires="tensor_map"),
    _helper("made_maps", "made_maps|map_slot_taken", "tensor_map"),
    _helper("take_map_slot"),
    _helper("free_map_slot"),
    _helper("make_tensor_map_2d", requires="shared_address tensor_map"),
    _helper("tma_store_wait"),
    _helper("tma_store_complete"),
    _helper("async_proxy_fence"),
    _helper("named_barrier_sync"),
    _helper("block_reduce", "block_reduce(_in_order)?"),
    _helper("named_barrier_arrive"),
    _helper("block_reduce_rows", "block_reduce_rows(_in_order)?"),
    _helper("grid_wait"),
    _helper("grid_release_dependents"),
    _helper("warpgroup_shrink"),
    _helper("warpgroup_grow"),
    _helper("cp_async", r"cp_async_\d+(_evict_first)?", "shared_address"),
    _helper("cp_async_commit"),
    _helper("cp_async_wait"),
    _helper("row_lead"),
    _helper("copy_rows", requires="row_lead"),
    _helper("align_rows", "align_rows|shift_bytes", "row_lead"),
    _helper("ldmatrix", r"ldmatrix_x\d(_trans)?", "shared_address"),
    _helper("stmatrix", r"stmatrix_x\d(_trans)?", "shared_address"),
    _helper("transpose_bytes"),
    _helper("store_matrices", "store_matrices(_from)?"),
    _helper("store_matrices_across"),
    _helper("load_matrices"),
    _helper("load_byte_pair"),
    _helper("load_byte_pairs"),
    _helper("round_tf32"),
    _helper("split_tf32", requires="round_tf32"),
    _helper("pack_bf16"),
    _helper("split_bf16", requires="pack_bf16"),
    _helper("split_tile", requires="pack_bf16 split_bf16"),
    _helper("rest_of_tf32", requires="round_tf32"),
    _helper("split_across", requires="round_tf32"),
    _helper("mma", r"mma_m\d+n\d+k\d+(_\w+)?"),
    _helper("mma_double", r"mma_m\d+n\d+k\d+"),
    _helper("mma_split", r"mma_(tf|bf)\d+x\d(_\w+)?"),
    _helper("wgmma_descriptor", requires="shared_address"),
    _helper("wgmma_fence"),
    _helper("wgmma_commit"),
    _helper("wgmma_wait"),
    _helper("wgmma_take", r"wgmma_take(_\w+)?"),
    _helper("wgmma_pin", r"wgmma_pin(_\w+)?"),
    _helper("fragment_pin"),
    _helper("wgmma_fragment", requires="pack_pair fragment_pin"),
    _helper("wgmma", r"wgmma_m\d+n\d+k\d+(_\w+)?"),
)
