"""Decoders of text, whole passes and steps with a cache."""

from catalog import row
from huggingface import decoder_step, text

ALL = "pt2-dyn dynamo18 script17"
CUT = {"num_hidden_layers": 2}
QWEN2 = {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "tie_word_embeddings": True}
QWEN3 = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072}
SMOL = {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "tie_word_embeddings": True}
TINY = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 5632}
GEMMA3 = {
    "hidden_size": 640,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "intermediate_size": 2048,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"],
}

row(
    "gpt2-2",
    "gpt2",
    text("GPT2LMHeadModel", "GPT2Config", n_layer=2),
    ALL + " pt2-core pt2-dyn@2.6 pt2-dyn@2.9 dynamo20 script13 q-dyn q4-32 " "ortopt-gpt2 optimum-text optimum-past pt2-strict-dyn",
)
row("gpt2-step", "gpt2", decoder_step("GPT2LMHeadModel", "GPT2Config", 2, 12, 64, n_layer=2), ALL + " pt2-dyn@2.9")
row("gpt2", "gpt2", text("GPT2LMHeadModel", "GPT2Config", vocabulary=50257), "dynamo18", True)
row(
    "gpt-neox-2",
    "gpt-neox",
    text("GPTNeoXForCausalLM", "GPTNeoXConfig", hidden_size=512, num_attention_heads=8, intermediate_size=2048, **CUT, rotary_pct=0.25),
    ALL + " optimum-past q-dyn",
)
row("gptj-2", "gptj", text("GPTJForCausalLM", "GPTJConfig", n_embd=1024, n_layer=2, n_head=16, rotary_dim=64), "pt2-dyn script17")
row(
    "opt-2",
    "opt",
    text("OPTForCausalLM", "OPTConfig", hidden_size=768, num_attention_heads=12, ffn_dim=3072, word_embed_proj_dim=768, **CUT),
    "pt2-dyn dynamo18 optimum-text",
)
row("bloom-2", "bloom", text("BloomForCausalLM", "BloomConfig", hidden_size=1024, n_head=16, n_layer=2), "pt2-dyn script17 optimum-text")
row(
    "smollm-2",
    "llama",
    text("LlamaForCausalLM", "LlamaConfig", **SMOL, **CUT),
    ALL + " pt2 pt2-strict-dyn pt2-core pt2-named pt2-dyn@2.6 pt2-dyn@2.9 "
    "dynamo21 dynamo23 script14 q-dyn q4-32 q4-128-asym q4-16-acc4 q8-32 q4-qdq fp16 genai-fp32 genai-fp16 genai-int4 genai-int4-acc1 "
    "optimum-text optimum-past",
)
row("smollm-step", "llama", decoder_step("LlamaForCausalLM", "LlamaConfig", 2, 3, 64, **SMOL, **CUT), ALL + " q4-32 pt2-dyn@2.9")
row("tinyllama-2", "llama", text("LlamaForCausalLM", "LlamaConfig", **TINY, **CUT), "dynamo18 genai-int4")
row(
    "smollm-135m",
    "llama",
    text("LlamaForCausalLM", "LlamaConfig", vocabulary=49152, **SMOL, num_hidden_layers=30),
    "pt2-dyn genai-int4-acc1",
    True,
)
row(
    "qwen2-2",
    "qwen",
    text("Qwen2ForCausalLM", "Qwen2Config", **QWEN2, **CUT),
    ALL + " pt2-dyn@2.9 q4-32 genai-fp32 genai-fp16 genai-int4 " "genai-int4-b128 optimum-past",
)
row("qwen2-step", "qwen", decoder_step("Qwen2ForCausalLM", "Qwen2Config", 2, 2, 64, **QWEN2, **CUT), "pt2-dyn dynamo20")
row(
    "qwen2-0.5b",
    "qwen",
    text("Qwen2ForCausalLM", "Qwen2Config", vocabulary=151936, **QWEN2, num_hidden_layers=24, lengths=((1, 8), (2, 12))),
    "pt2-dyn genai-int4-acc1",
    True,
    external=True,
)
row("qwen3-2", "qwen", text("Qwen3ForCausalLM", "Qwen3Config", **QWEN3, **CUT), ALL + " genai-int4 genai-fp16 genai-fp32 q4-128-asym")
row(
    "mistral-2",
    "mistral",
    text(
        "MistralForCausalLM",
        "MistralConfig",
        hidden_size=1024,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=128,
        intermediate_size=3584,
        sliding_window=8,
        **CUT
    ),
    ALL + " genai-int4 genai-fp16",
)
row(
    "gemma-2",
    "gemma",
    text(
        "GemmaForCausalLM",
        "GemmaConfig",
        hidden_size=1024,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        intermediate_size=4096,
        **CUT
    ),
    "pt2-dyn dynamo18 genai-int4 optimum-text",
)
row(
    "gemma2-2",
    "gemma",
    text(
        "Gemma2ForCausalLM",
        "Gemma2Config",
        hidden_size=1152,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        intermediate_size=4608,
        sliding_window=8,
        attention="eager",
        **CUT
    ),
    "pt2-dyn dynamo18 genai-int4 genai-fp16",
)
row(
    "gemma3-270m-2",
    "gemma",
    text("Gemma3ForCausalLM", "Gemma3TextConfig", **GEMMA3, **CUT),
    "pt2-dyn dynamo18 script17 genai-int4 pt2-dyn@2.9",
)
row(
    "phi-2",
    "phi",
    text("PhiForCausalLM", "PhiConfig", hidden_size=2048, num_attention_heads=32, intermediate_size=8192, partial_rotary_factor=0.5, **CUT),
    "pt2-dyn dynamo18",
)
row(
    "phi3-2",
    "phi",
    text(
        "Phi3ForCausalLM",
        "Phi3Config",
        hidden_size=1024,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=2048,
        pad_token_id=0,
        sliding_window=12,
        **CUT
    ),
    "pt2-dyn dynamo18 script17 genai-int4",
)
row(
    "mixtral-2",
    "mixtral",
    text(
        "MixtralForCausalLM",
        "MixtralConfig",
        hidden_size=512,
        num_attention_heads=8,
        num_key_value_heads=2,
        intermediate_size=1024,
        num_local_experts=8,
        num_experts_per_tok=2,
        **CUT
    ),
    "pt2-dyn dynamo18 pt2 script17",
)
row(
    "granitemoe-2",
    "mixtral",
    text(
        "GraniteMoeForCausalLM",
        "GraniteMoeConfig",
        hidden_size=1024,
        num_attention_heads=16,
        num_key_value_heads=8,
        intermediate_size=512,
        num_local_experts=32,
        num_experts_per_tok=8,
        **CUT
    ),
    "pt2-dyn dynamo18",
)
row(
    "qwen2-moe-2",
    "mixtral",
    text(
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        hidden_size=512,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=1408,
        moe_intermediate_size=352,
        shared_expert_intermediate_size=1408,
        num_experts=16,
        num_experts_per_tok=4,
        **CUT
    ),
    "pt2-dyn dynamo18",
)
row(
    "mamba-130m-2",
    "mamba",
    text("MambaForCausalLM", "MambaConfig", hidden_size=768, num_hidden_layers=2, state_size=16, masked=False, lengths=((1, 12), (1, 12))),
    "pt2 dynamo18 script17",
)
row(
    "mamba2-2",
    "mamba",
    text(
        "Mamba2ForCausalLM",
        "Mamba2Config",
        hidden_size=768,
        num_hidden_layers=2,
        num_heads=24,
        head_dim=64,
        state_size=128,
        n_groups=1,
        chunk_size=16,
        masked=False,
        lengths=((1, 32), (1, 32)),
    ),
    "pt2 dynamo18",
)
row(
    "rwkv-169m-2",
    "rwkv",
    text(
        "RwkvForCausalLM", "RwkvConfig", hidden_size=768, num_hidden_layers=2, context_length=64, masked=False, lengths=((1, 12), (1, 12))
    ),
    "pt2 script17 pt2@2.6",
)
row(
    "olmo2-2",
    "olmo",
    text(
        "Olmo2ForCausalLM", "Olmo2Config", hidden_size=1024, num_attention_heads=16, num_key_value_heads=16, intermediate_size=4096, **CUT
    ),
    "pt2-dyn dynamo18",
)
row(
    "stablelm-2",
    "stablelm",
    text(
        "StableLmForCausalLM",
        "StableLmConfig",
        hidden_size=1024,
        num_attention_heads=16,
        num_key_value_heads=16,
        intermediate_size=2816,
        partial_rotary_factor=0.25,
        **CUT
    ),
    "pt2-dyn dynamo18",
)
row(
    "falcon-2",
    "falcon",
    text(
        "FalconForCausalLM",
        "FalconConfig",
        hidden_size=1024,
        num_attention_heads=16,
        new_decoder_architecture=False,
        multi_query=True,
        **CUT
    ),
    "pt2-dyn script17",
)
row(
    "lfm2-2",
    "lfm2",
    text(
        "Lfm2ForCausalLM",
        "Lfm2Config",
        hidden_size=1024,
        num_attention_heads=16,
        num_key_value_heads=8,
        intermediate_size=4608,
        layer_types=["conv", "full_attention"],
        **CUT
    ),
    "pt2-dyn dynamo18",
)
row(
    "gemma3n-4",
    "gemma",
    text(
        "Gemma3nForCausalLM",
        "Gemma3nTextConfig",
        lengths=((2, 16),),
        vocab_size_per_layer_input=1000,
        hidden_size=64,
        intermediate_size=[128] * 4,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        hidden_size_per_layer_input=8,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=2,
        laurel_rank=8,
        activation_sparsity_pattern=[0.5, 0.5, 0.0, 0.0],
        altup_num_inputs=2,
    ),
    "pt2 pt2-core",
)
row(
    "deepseek-v2-2",
    "deepseek",
    text(
        "DeepseekV2ForCausalLM",
        "DeepseekV2Config",
        lengths=((2, 16),),
        hidden_size=64,
        intermediate_size=128,
        moe_intermediate_size=32,
        num_attention_heads=4,
        num_key_value_heads=4,
        n_routed_experts=4,
        n_shared_experts=1,
        num_experts_per_tok=2,
        kv_lora_rank=16,
        q_lora_rank=24,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
        first_k_dense_replace=1,
        n_group=1,
        topk_group=1,
        topk_method="greedy",
        **CUT,
    ),
    "pt2 pt2-core",
)
row(
    "llama4-4",
    "llama",
    text(
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        lengths=((2, 16),),
        hidden_size=64,
        intermediate_size=64,
        intermediate_size_mlp=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=4,
        num_experts_per_tok=1,
        interleave_moe_layer_step=2,
        attention_chunk_size=8,
        no_rope_layers=[1, 1, 1, 0],
        pad_token_id=0,
    ),
    "pt2 pt2-core",
)
