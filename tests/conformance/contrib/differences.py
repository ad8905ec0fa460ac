"""Where ONNX Runtime's CPU provider does not give what the definitions say: case (a pattern) -> why."""

# Computed, with other values.
DIFFERENCES = {
    "MatMulNBits_[24]bits_groups": "with g_idx the kernel takes 2^(bits - 1) instead of packed zero points; float ones it takes",
    "MatMulNBits_groups_in_order": "with g_idx the kernel takes 2^(bits - 1) instead of packed zero points; float ones it takes",
    "MatMulNBits_accuracy4*": "accuracy_level 4 lets the kernel round A to int8; a minimum accuracy, which the exact product has too",
    "MultiHeadAttention_past_not_returned": "the kernel forgets the past where no output asks for the present; the definition does not",
}

# Not computed: no kernel for the operator, the type or the form.
LACKING = {
    "MatMulNBits_*bits_bf16": "no kernel of bfloat16",
    "MatMulNBits_8bits_zero_float": "no kernel of 8 bits with float zero points",
    "MatMulNBits_8bits_groups": "no kernel of 8 bits with g_idx",
    "RotaryEmbedding_bf16*": "no kernel of bfloat16",
    "MultiHeadAttention_bf16*": "no kernel of bfloat16",
    "Attention_bf16*": "no kernel of bfloat16",
    "GroupQueryAttention_bf16*": "no kernel of bfloat16",
    "MultiHeadAttention_packed*": "no kernel of packed QKV or packed KV",
    "MultiHeadAttention_past_packed_kv": "no kernel of packed KV",
    "MultiHeadAttention_causal_packed": "no kernel of packed QKV",
    "MultiHeadAttention_open_causal": "no kernel of packed QKV",
    "MultiHeadAttention_*_value_size": "a 4D value, and a past one, must have the head size of the keys",
    "MultiHeadAttention_mask_kv_past": "a mask of kv_sequence_length beside a past is refused; the definition lists it",
    "Attention_mask_megatron": "no kernel of a 4D mask",
    "Attention_added_past": "attention_bias and past together are refused",
    "Attention_rotary*": "no kernel of do_rotary",
    "Attention_buffer": "the kernel never reads past_sequence_length, and refuses a shared buffer",
    "GroupQueryAttention_prompt_key_alone": "present_key without present_value is refused",
    "GroupQueryAttention_norm*": "no kernel of q_norm_weight and k_norm_weight",
    "FusedMatMul_bf16": "no kernel of bfloat16",
    "GatherBlockQuantized_*bf16": "no kernel of bfloat16",
    "SimplifiedLayerNormalization_contrib_domain*": "the operator is declared in the default domain alone; exporters write both",
}
