"""Models that break what the definitions ask for: a case with an operand or attribute changed, and the words that the refusal has.
Words are regular expressions, each of which is in the one line of the error."""
import copy

from case import Weight
from generate import all_cases
from tensors import Tensor

import numpy as np

WRONG, RUNS = [], []
CASES = {case.name: case for case in all_cases()}


def zeros(kind, *shape):
    return Tensor(kind, np.zeros(shape))


def wrong(base, variant, *words, operands=None, results=None, without=(), **attributes):
    """`operands`: index -> what stands there instead, None for nothing; `without`: attributes that are left out."""
    case = copy.copy(CASES[base])
    given = list(case.sets[0])
    for index, operand in (operands or {}).items():
        given += [None] * (index + 1 - len(given))
        given[index] = Weight(operand) if operand is not None and isinstance(given[index], Weight) else operand
    while given and given[-1] is None:
        given.pop()
    case.sets, case.attributes = [given], {k: v for k, v in {**case.attributes, **attributes}.items() if k not in without}
    if results:
        case.results = results
        known = [w for w in case.wanted[0] if w is not None]  # what an output that the case lacks is declared as does not matter
        case.wanted = [[*known, *known][:len(results)]]
    case.name, case.words = f"{case.op}_wrong_{variant}", words
    WRONG.append(case)


def wrong_run(base, variant, *words, operands):
    """A model that compiles, whose operands a run gives values that the definition forbids."""
    case = copy.copy(CASES[base])
    case.sets = [[operands.get(i, operand) for i, operand in enumerate(case.sets[0])]]
    case.name, case.words = f"{case.op}_wrong_run_{variant}", words
    RUNS.append(case)


def constant(kind, values):
    return Weight(Tensor(kind, np.array(values)))


# --- Products ---------------------------------------------------------------------------------------------------------
# K 64, N 24, blocks of 32, 4 bits: B is [24, 2, 16], scales [24, 2].
BITS = "MatMulNBits_bias_and_zero"
wrong(BITS, "packed_bytes", "packed weights", "16", operands={1: zeros("u8", 24, 2, 15)})
wrong(BITS, "packed_columns", "packed weights", "24", operands={1: zeros("u8", 23, 2, 16)})
wrong(BITS, "packed_blocks", "packed weights", operands={1: zeros("u8", 24, 3, 16)})
wrong(BITS, "block_24", "block_size", "24", block_size=24)
wrong(BITS, "block_8", "block_size", "8", block_size=8)
wrong(BITS, "block_none", "block_size", without=["block_size"])
wrong(BITS, "bits_3", "bits", "3", bits=3)
wrong(BITS, "bits_9", "bits", "9", bits=9)
wrong(BITS, "k_of_input", "K", operands={0: zeros("f32", 2, 3, 60)})
wrong(BITS, "no_k", "'?K'?", without=["K"])
wrong(BITS, "negative_n", "'?N'?", N=-24)
wrong(BITS, "scales", "scales", operands={2: zeros("f32", 24, 3)})
wrong(BITS, "scales_type", "scales|type", operands={2: zeros("f16", 24, 2)})
wrong(BITS, "zero_points", "zero_points", operands={3: zeros("u8", 24, 2)})
wrong(BITS, "float_zero_points", "zero_points", operands={3: zeros("f32", 24, 3)})
wrong(BITS, "bias", "bias", "24", operands={5: zeros("f32", 23)})
wrong("MatMulNBits_bias_and_groups", "groups", "g_idx", operands={4: zeros("i32", 63)})
wrong("MatMulNBits_bias_and_groups", "groups_beyond", "g_idx", operands={4: Tensor("i32", np.full(64, 2))})
wrong(BITS, "prepacked", "weight_prepacked", weight_prepacked=1)
wrong(BITS, "prepacked_hopper", "weight_prepacked", weight_prepacked=2)
wrong("FusedMatMul_plain", "extents", "4", "3", operands={1: zeros("f32", 3, 5)})
wrong("FusedMatMul_trans_b", "transposed", "4", operands={1: zeros("f32", 4, 5)})
GATHER = "GatherBlockQuantized_u4_zero"  # data [10, 64], blocks of 32
wrong(GATHER, "block_24", "block_size", "24", block_size=24)
wrong(GATHER, "block_8", "block_size", "8", block_size=8)
wrong(GATHER, "scales", "scales", operands={2: zeros("f32", 10, 3)})
wrong(GATHER, "scales_rank", "scales", operands={2: zeros("f32", 20)})
wrong(GATHER, "zero_points", "zero_points", operands={3: zeros("u4", 10, 3)})
wrong(GATHER, "axis", "axis", "2", gather_axis=2)
wrong(GATHER, "quantized_axis", "axis", quantize_axis=-3)
wrong("GatherBlockQuantized_u8_4bits", "bits_5", "bits", "5", bits=5)
wrong("GatherBlockQuantized_u8_4bits", "axis_of_bytes", "axis", gather_axis=1, quantize_axis=0)
wrong("FusedGemm_type_relu", "extents", "inner|extent|8", operands={1: zeros("f32", 7, 5)})
wrong("FusedGemm_type_relu", "activation", "activation", "Swoosh", activation="Swoosh")
wrong("FusedGemm_type_relu", "c", "'?C'?|broadcast", operands={2: zeros("f32", 4)})
wrong("FusedConv_bias_added", "activation", "activation", "Swoosh", activation="Swoosh")
wrong("FusedConv_bias_added", "added", "'?Z'?|added", operands={3: zeros("f32", 1, 6, 6, 6)})
wrong("FusedConv_bias_added", "channels", "'?W'?|group|channel", operands={1: zeros("f32", 6, 3, 3, 3)})
for op in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"):
    scale_at = 2 if op == "DynamicQuantizeMatMul" else 3
    wrong(f"{op}_columns_bias", "extents", "inner|extent|16", operands={1: zeros("i8", 15, 10)})
    wrong(f"{op}_columns_bias", "scales", "scale", operands={scale_at: zeros("f32", 9)})
    wrong(f"{op}_columns_bias", "bias", "bias", operands={4 if scale_at == 2 else 6: zeros("f32", 9)})
    wrong(f"{op}_columns_bias", "zeros", "zero_point|broadcast", operands={3 if scale_at == 2 else 5: zeros("i8", 9)})

# No more operands than the definition lists, of one type where it has one.
wrong("FusedGemm_type_relu", "33_operands", "at most 3", "33", operands={i: zeros("f32", 5) for i in range(3, 33)})
wrong("FusedMatMul_plain", "third_operand", "at most 2", "3", operands={2: zeros("f32", 5)})
wrong("FusedMatMul_plain", "second_result", "at most 1 result", "2", results=(1, 1))
wrong("BiasGelu_plain", "third_operand", "at most 2", "3", operands={2: zeros("f32", 5)})
for op in ("FusedMatMul", "TransposeMatMul"):
    wrong(f"{op}_plain", "types", "f32", "f16", "one type", operands={1: zeros("f16", 4, 5)})

# --- Attention --------------------------------------------------------------------------------------------------------
# GroupQueryAttention: 4 heads and 2 of keys, 16 wide; a past of 8 rows, 6 tokens after the step.
STEP, PROMPT = "GroupQueryAttention_rotary_step", "GroupQueryAttention_prompt_batch"
wrong(PROMPT, "groups", "num_heads", "kv_num_heads", num_heads=4, kv_num_heads=3)
wrong(PROMPT, "heads", "num_heads|head", num_heads=6, kv_num_heads=2)
wrong(PROMPT, "no_heads", "num_heads", num_heads=0)
wrong(PROMPT, "heads_absent", "kv_num_heads", without=["kv_num_heads"])
wrong(PROMPT, "value_alone", "key", operands={1: None})
wrong(PROMPT, "key_alone", "value", operands={2: None})
wrong(PROMPT, "key_width", "key", operands={1: zeros("f32", 2, 4, 48)})
wrong(PROMPT, "key_batch", "key|batch", operands={1: zeros("f32", 3, 4, 32)})
wrong("GroupQueryAttention_packed", "packed_width", "query|num_heads|head", operands={0: zeros("f32", 2, 4, 130)})
wrong(STEP, "past_alone", "past", operands={4: None})
wrong(STEP, "past_heads", "past", operands={3: zeros("f32", 1, 4, 8, 16)})
wrong(STEP, "past_width", "past", operands={3: zeros("f32", 1, 2, 8, 8)})
wrong(STEP, "past_rows", "past", operands={4: zeros("f32", 1, 2, 7, 16)})
wrong(STEP, "past_rank", "past", operands={3: zeros("f32", 1, 8, 32)})
wrong(STEP, "lengths", "seqlens_k", operands={5: zeros("i32", 2)})
wrong(STEP, "total_of_two", "total_sequence_length", operands={6: zeros("i32", 2)})
wrong(STEP, "no_caches", "cos_cache|cache", operands={7: None, 8: None})
wrong(STEP, "cosines_alone", "sin_cache|cache", operands={8: None})
wrong(STEP, "cache_width", "cos_cache|cache", operands={7: zeros("f32", 16, 16), 8: zeros("f32", 16, 16)})
wrong(STEP, "cache_widths", "sin_cache|cache", operands={8: zeros("f32", 16, 4)})
wrong("GroupQueryAttention_step_buffer_constant", "beyond_capacity", "seqlens_k|capacity|total_sequence_length",
      operands={5: Tensor("i32", [19])})
wrong("GroupQueryAttention_prompt_constant_lengths", "total_too_small", "total_sequence_length", operands={6: Tensor("i32", np.array(3))})
wrong("GroupQueryAttention_positions_step", "positions", "position_ids", operands={9: zeros("i64", 2, 1)})
wrong("GroupQueryAttention_bias_heads", "bias_heads", "attention_bias", operands={10: zeros("f32", 1, 3, 4, 4)})
wrong("GroupQueryAttention_bias_heads", "bias_rows", "attention_bias", operands={10: zeros("f32", 1, 4, 3, 4)})
wrong("GroupQueryAttention_sink", "sink", "head_sink", operands={11: zeros("f32", 3)})
wrong("GroupQueryAttention_norm", "norm_alone", "k_norm_weight", operands={15: None})
wrong("GroupQueryAttention_norm", "norm_width", "q_norm_weight|k_norm_weight|norm", operands={14: zeros("f32", 8)})
wrong("GroupQueryAttention_both_ways", "window_both_ways", "local_window_size", local_window_size=2)
wrong(PROMPT, "output_qk", "qk_output", qk_output=3)
wrong("GroupQueryAttention_cache_i8_per_tensor", "cache_without_scale", "scale|k_quant_type", operands={12: None})
wrong(PROMPT, "quantization", "k_quant_type", k_quant_type="PER_ROW")
wrong("GroupQueryAttention_sliding_full", "window_of_cache", "sliding_window_cache|local_window_size|window", local_window_size=5)

wrong_run("GroupQueryAttention_step_buffer", "beyond_capacity", "index|length|capacity", operands={
    5: Tensor("i32", [39]), 6: Tensor("i32", np.array(40))})
wrong_run("GroupQueryAttention_rotary_step", "beyond_capacity_rotated", "index|length|capacity|position", operands={
    5: Tensor("i32", [39]), 6: Tensor("i32", np.array(40))})
wrong_run("GroupQueryAttention_positions_step", "positions_beyond", "index|position", operands={9: Tensor("i64", [[16]])})
wrong_run("RotaryEmbedding_one_token", "positions_beyond", "index|position", operands={1: Tensor("i64", [[12]])})
wrong_run("EmbedLayerNormalization_plain", "ids_beyond", "index|input_ids", operands={0: Tensor("i32", np.full((2, 4), 20))})
wrong_run("MatMulNBits_weights_at_run_everything", "groups_beyond", "index|g_idx", operands={4: Tensor("i32", np.full(64, 2))})

# MultiHeadAttention: 2 heads of 8, 4 queries, a past of 3.
MULTI, PAST = "MultiHeadAttention_bias_mask_added", "MultiHeadAttention_mask_total_past"
wrong(MULTI, "heads", "num_heads|heads", num_heads=3)
wrong(MULTI, "no_heads", "num_heads", num_heads=0)
wrong(MULTI, "heads_absent", "num_heads", without=["num_heads"])
wrong(MULTI, "no_value", "value", operands={2: None})
wrong(MULTI, "key_width", "key", operands={1: zeros("f32", 2, 4, 8)})
wrong(MULTI, "lengths", "value|key", operands={2: zeros("f32", 2, 5, 16)})
wrong(MULTI, "bias", "bias", operands={3: zeros("f32", 47)})
wrong(MULTI, "mask", "mask", operands={4: zeros("i32", 2, 7)})
wrong(MULTI, "added", "attention_bias", operands={5: zeros("f32", 2, 2, 4, 5)})
wrong(MULTI, "query_rank", "query", operands={0: zeros("f32", 2, 4, 2, 8)})
wrong("MultiHeadAttention_packed", "packed", "query|packed|num_heads", operands={0: zeros("f32", 2, 4, 2, 2, 8)})
wrong(PAST, "past_alone", "past", operands={7: None})
wrong(PAST, "past_width", "past", operands={6: zeros("f32", 2, 2, 3, 4)})
wrong(PAST, "past_heads", "past", operands={6: zeros("f32", 2, 3, 3, 8)})
wrong(PAST, "beams", "cache_indirection", operands={8: Tensor("i32", [2]), 9: zeros("i32", 2, 1, 3)})

# Attention: 2 heads, 12 wide input, weights [12, 48].
MERGED = "Attention_added_mask"
wrong(MERGED, "input_width", "weights|input", operands={0: zeros("f32", 2, 4, 11)})
wrong(MERGED, "weights_columns", "weights|columns", operands={1: zeros("f32", 12, 47), 2: None})
wrong(MERGED, "heads", "num_heads|heads", num_heads=5)
wrong(MERGED, "bias", "bias", operands={2: zeros("f32", 47)})
wrong(MERGED, "mask", "mask", operands={3: zeros("i32", 2, 5)})
wrong(MERGED, "mask_length", "mask", operands={3: zeros("i32", 3)})
wrong(MERGED, "added", "attention_bias", operands={5: zeros("f32", 1, 2, 4, 5)})
wrong("Attention_sizes_of_value", "sizes_sum", "qkv_hidden_sizes", qkv_hidden_sizes=[16, 16, 16])
wrong("Attention_sizes_of_value", "sizes_two", "qkv_hidden_sizes", qkv_hidden_sizes=[20, 20])
wrong("Attention_sizes_of_value", "sizes_differ", "qkv_hidden_sizes", qkv_hidden_sizes=[12, 20, 8])
wrong("Attention_past", "past", "past", operands={4: zeros("f32", 2, 2, 2, 3, 4)})
wrong("Attention_past", "past_rank", "past", operands={4: zeros("f32", 2, 2, 3, 8)})
wrong("QAttention_columns", "weights", "weight", operands={1: zeros("i8", 11, 48)})
wrong("QAttention_columns", "scales", "scale", operands={4: zeros("f32", 47)})
wrong("QAttention_columns", "bias", "bias", operands={2: zeros("f32", 47)})
wrong("QAttention_columns", "heads", "num_heads|heads", num_heads=5)
ROTARY = "RotaryEmbedding_num_heads"  # [2, 4, 48], three heads of 16, caches [12, 8]
wrong(ROTARY, "heads", "num_heads|heads", num_heads=5)
wrong(ROTARY, "width", "cos_cache|cache", operands={2: zeros("f32", 12, 9), 3: zeros("f32", 12, 9)})
wrong(ROTARY, "widths", "sin_cache|cache", operands={3: zeros("f32", 12, 7)})
wrong(ROTARY, "positions", "position_ids", operands={1: zeros("i64", 2, 3)})
wrong(ROTARY, "positions_of_two", "position_ids", operands={1: zeros("i64", 2)})
wrong(ROTARY, "positions_beyond", "position_ids|position|index", "12", operands={1: constant("i64", [[3, 4, 5, 12]] * 2)})
wrong("RotaryEmbedding_flat", "dim_without_heads", "num_heads", rotary_embedding_dim=8,
      operands={2: zeros("f32", 12, 4), 3: zeros("f32", 12, 4)})

# --- Norms and activations --------------------------------------------------------------------------------------------
wrong("SimplifiedLayerNormalization_plain", "scale", "scale|broadcast", operands={1: zeros("f32", 7)})
wrong("SimplifiedLayerNormalization_plain", "axis", "axis", "3", axis=3)
for op in ("SkipSimplifiedLayerNormalization", "SkipLayerNormalization"):
    wrong(f"{op}_bias", "gamma", "gamma", operands={2: zeros("f32", 7)})
    wrong(f"{op}_bias", "skip", "skip", operands={1: zeros("f32", 2, 4, 8)})
    wrong(f"{op}_bias", "bias", "bias", operands={4 if op == "SkipLayerNormalization" else 3: zeros("f32", 7)})
wrong("SkipLayerNormalization_beta", "beta", "beta", operands={3: zeros("f32", 7)})
wrong("SkipSimplifiedLayerNormalization_sum", "mean", "mean|out1", results=(1, 1))
EMBED = "EmbedLayerNormalization_everything"
wrong(EMBED, "gamma", "gamma", operands={5: zeros("f32", 7)})
wrong(EMBED, "segments_without_table", "segment_embedding", operands={4: None})
wrong(EMBED, "widths", "position_embedding|hidden|broadcast|width", operands={3: zeros("f32", 9, 7)})
wrong(EMBED, "mask", "mask", operands={7: zeros("i32", 2, 5)})
wrong("EmbedLayerNormalization_plain", "few_positions", "position_embedding|index", operands={3: zeros("f32", 3, 8)})
for op in ("GroupNorm", "SkipGroupNorm"):
    wrong(f"{op}_plain", "groups", "groups", groups=3)
    wrong(f"{op}_plain", "no_groups", "groups", groups=0)
    wrong(f"{op}_plain", "activation", "activation", activation=2)
    wrong(f"{op}_plain", "gamma", "gamma", operands={1: zeros("f32", 7)})
wrong("SkipGroupNorm_bias", "skip", "skip", operands={3: zeros("f32", 2, 8, 5, 4)})
wrong("SkipGroupNorm_bias", "bias", "bias", operands={4: zeros("f32", 7)})
wrong("BiasGelu_plain", "bias", "'?B'?|bias", operands={1: zeros("f32", 7)})
wrong("FastGelu_bias", "bias", "bias|broadcast", operands={1: zeros("f32", 7)})
wrong("BiasSplitGelu_plain", "odd", "even|two|half|2", operands={0: zeros("f32", 2, 3, 7), 1: zeros("f32", 7)})
wrong("BiasSplitGelu_plain", "bias", "bias", operands={1: zeros("f32", 7)})

# --- Experts ----------------------------------------------------------------------------------------------------------
# Hidden 16 (QMoE 32), inner 24 (64), 4 experts, 6 tokens.
wrong("MoE_type_silu_two", "too_many", "'?k'?", "5", k=5)
wrong("MoE_type_silu_two", "none", "'?k'?", "0", k=0)
wrong("MoE_type_silu_two", "router", "router", operands={1: zeros("f32", 9, 4)})
wrong("MoE_type_silu_two", "first", "fc1", operands={2: zeros("f32", 4, 24, 15)})
wrong("MoE_type_silu_two", "second", "fc1|fc2", operands={4: zeros("f32", 4, 16, 23)})
wrong("MoE_type_silu_two", "experts", "experts", operands={2: zeros("f32", 3, 24, 16)})
wrong("MoE_type_silu_two", "bias", "fc1", "bias", operands={3: zeros("f32", 4, 23)})
wrong("MoE_type_silu_two", "activation", "activation_type", "swish", activation_type="swish")
wrong("MoE_mixer", "mixer_of_three", "sparse_mixer|'?k'?", k=3)
wrong("MoE_swiglu", "fusion", "swiglu_fusion", swiglu_fusion=3)
wrong("MoE_swiglu_third", "no_third", "fc3|swiglu_fusion", operands={6: None, 7: None})
Q = "QMoE_4bits_block_zero"  # blocks of 16
wrong(Q, "packed", "fc1", operands={2: zeros("u8", 4, 64, 15)})
wrong(Q, "packed_second", "fc2", operands={5: zeros("u8", 4, 31, 32)})
wrong(Q, "block_24", "block_size", "24", block_size=24)
wrong(Q, "block_64", "block_size", "64", block_size=64)
wrong(Q, "bits_5", "bits", "5", expert_weight_bits=5)
wrong(Q, "scales", "fc1", "scales", operands={3: zeros("f32", 4, 64, 3)})
wrong(Q, "scales_of_rows", "fc1", "scales", operands={3: zeros("f32", 4, 64)})
wrong(Q, "no_scales", "fc1", "scales", operands={3: None})
wrong(Q, "zero_points", "fc1", "zero_points", operands={11: zeros("u8", 4, 64, 2)})
wrong(Q, "zero_points_second", "fc2", "zero_points", operands={12: zeros("u8", 4, 32, 3)})
wrong(Q, "bias", "fc2", "bias", operands={7: zeros("f32", 4, 31)})
wrong(Q, "too_many", "'?k'?", k=5)
wrong(Q, "floats", "quant_type", "fp4", quant_type="fp4")
wrong(Q, "floats_8", "quant_type", "fp8", quant_type="fp8")
wrong(Q, "prepacked", "weights_prepacked", weights_prepacked=1)
wrong("QMoE_mixer", "mixer_of_one", "sparse_mixer|'?k'?", k=1)
wrong(Q, "activation", "activation_type", activation_type="swish")
wrong("QMoE_router_weights", "router_weights", "router_weights", operands={14: zeros("f32", 6, 3)})
wrong("QMoE_swiglu_third", "no_third", "fc3|swiglu_fusion", operands={8: None, 9: None, 10: None})
wrong("QMoE_4bits_swiglu", "widths", "fc3_expert_weight_bits|fc1_expert_weight_bits", fc3_expert_weight_bits=8)

# --- The QLinear family -----------------------------------------------------------------------------------------------
for op in ("QLinearAdd", "QLinearMul"):
    wrong(f"{op}_u8", "broadcast", "broadcast|shape|extent|'?B'?", operands={3: zeros("u8", 3, 3, 5)})
    wrong(f"{op}_u8", "scales", "scale", operands={1: zeros("f32", 3)})
for op in ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"):
    wrong(f"{op}_u8", "scales", "scale", operands={1: zeros("f32", 3)})
wrong("QLinearSoftmax_u8_axis", "axis", "axis", "3", axis=3)
wrong("QLinearSoftmax_u8_axis", "no_opset", "opset", without=["opset"])
wrong("QLinearAveragePool_u8", "no_kernel", "kernel_shape", without=["kernel_shape"])
wrong("QLinearAveragePool_u8", "kernel_rank", "kernel_shape", kernel_shape=[3])
wrong("QLinearAveragePool_u8", "pads", "pads", pads=[1, 1])
wrong("QLinearAveragePool_u8", "scales", "scale", operands={3: zeros("f32", 3)})
wrong("QLinearGlobalAveragePool_u8", "scales", "scale", operands={1: zeros("f32", 3)})
wrong("QLinearConcat_u8", "shapes", "axis|extent|shape|dim", operands={5: zeros("u8", 3, 5, 4)})
wrong("QLinearConcat_u8", "incomplete", "scale|zero|three|3", operands={7: None})
wrong("QLinearConcat_u8", "axis", "axis", axis=3)
wrong("QLinearReduceMean_u8", "axes", "axes|axis", axes=[3])
wrong("QLinearWhere_u8", "broadcast", "broadcast|shape|extent", operands={1: zeros("u8", 4, 5)})

# --- Attributes -------------------------------------------------------------------------------------------------------
for base in ("GroupNorm_first", "SkipGroupNorm_first", "QLinearConv_plain", "QLinearAveragePool_u8_last", "QLinearGlobalAveragePool_u8_last",
             "CausalConvWithState_last"):
    for last in (2, -1):
        wrong(base, f"channels_last_{last}".replace("-", "minus_"), "channels_last", "0 or 1", str(abs(last)), channels_last=last)
# Of another kind, whether anything asks for them or not.
wrong("GroupNorm_plain", "groups_float", "'groups' must be an integer", groups=4.0)
wrong("GroupNorm_plain", "epsilon_integer", "'epsilon' must be a number", epsilon=1)
wrong("EmbedLayerNormalization_mask_full", "mask_index_type_float", "'mask_index_type' must be an integer", mask_index_type=1.0)
wrong(BITS, "accuracy_level_float", "'accuracy_level' must be an integer", accuracy_level=4.0)
wrong("FusedGemm_type_relu", "activation_integer", "'activation' must be a string", activation=1)
wrong("FusedConv_bias_added", "activation_params_float", "'activation_params' must be a list of numbers", activation_params=1.0)
for op in ("BiasGelu", "FastGelu"):
    base = f"{op}_plain" if op == "BiasGelu" else f"{op}_bias"  # x [2, 3, 8]
    for shape in ((), (1,), (7,), (1, 8), (3, 8), (2, 3, 8)):
        wrong(base, "bias_" + "x".join(map(str, shape)), "bias", "vector", operands={1: zeros("f32", *shape)})

# --- Recurrences and positions ----------------------------------------------------------------------------------------
LINEAR, CONV = "LinearAttention_gated_delta_past", "CausalConvWithState_bias_past"
wrong(LINEAR, "rule", "update_rule", "forgetful", update_rule="forgetful")
wrong(LINEAR, "no_decay", "decay|update_rule", operands={4: None})
wrong(LINEAR, "no_beta", "beta|update_rule", operands={5: None})
wrong(LINEAR, "groups", "num_heads", q_num_heads=3)
wrong(LINEAR, "state", "state", operands={3: zeros("f32", 2, 2, 4, 8)})
wrong(LINEAR, "decay_width", "decay", operands={4: zeros("f32", 2, 5, 3)})
wrong(LINEAR, "beta_width", "beta", operands={5: zeros("f32", 2, 5, 3)})
wrong(LINEAR, "window", "state_window", state_window=9)
wrong(LINEAR, "heads_absent", "kv_num_heads", without=["kv_num_heads"])
wrong(CONV, "weights", "weight", operands={1: zeros("f32", 5, 1, 4)})
wrong(CONV, "bias", "bias", operands={2: zeros("f32", 5)})
wrong(CONV, "state", "state", operands={3: zeros("f32", 2, 6, 4)})
wrong(CONV, "activation", "activation", "gelu", activation="gelu")
wrong(CONV, "dilation", "dilation", dilation=0)
wrong(CONV, "rank", "ndim", ndim=2)
wrong(CONV, "window", "state_window", state_window=9)
wrong(CONV, "slice", "input_channel", input_channels=3)
wrong(CONV, "capture", "state_update_capacity", results=(1, 1, 1), state_update_capacity=2)
wrong("RelativePositionBias_one_way", "no_distance", "max_distance", without=["max_distance"])
wrong("RelativePositionBias_one_way", "table", "table", operands={0: zeros("f32", 16)})
GATED = "GatedRelativePositionBias_plain"
wrong(GATED, "odd", "weight|bias|even|2", operands={3: zeros("f32", 8, 7), 4: zeros("f32", 7)})
wrong(GATED, "heads", "num_heads|heads", num_heads=5)
wrong(GATED, "positions", "rel_pos", operands={2: zeros("f32", 1, 3, 4, 5)})
wrong(GATED, "packed_without_offsets", "token_offset|query", operands={0: zeros("f32", 8, 24)})
