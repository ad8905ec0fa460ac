"""Encoders of text."""

from catalog import row
from huggingface import text

BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
CUT = {"num_hidden_layers": 2}
HIDDEN = ("last_hidden_state",)
ALL = "pt2-dyn dynamo18 script17"

row(
    "bert-mini",
    "bert",
    text(
        "BertForSequenceClassification",
        "BertConfig",
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        num_labels=3,
    ),
    ALL + " pt2 pt2-core pt2-strict pt2-named pt2-dyn@2.6 pt2-dyn@2.9 dynamo20 dynamo23 script14 q-dyn q-dyn-u8 q4-32 ortopt ortopt-fp16 "
    "optimum-classes fp16",
    True,
)
row(
    "bert-base-2",
    "bert",
    text("BertModel", "BertConfig", **BASE, **CUT, names=("last_hidden_state", "pooler_output")),
    ALL + " pt2-strict-dyn pt2-strict@2.6 dynamo21 script12 q-dyn q8-32 ortopt ortopt-fp16 optimum-features",
)
row(
    "bert-base-eager",
    "bert",
    text("BertForMaskedLM", "BertConfig", **BASE, **CUT, attention="eager"),
    "pt2-dyn script17 ortopt q-qdq optimum-fill q4-qdq",
)
row(
    "bert-base",
    "bert",
    text("BertModel", "BertConfig", vocabulary=30522, **BASE, num_hidden_layers=12, names=HIDDEN),
    "pt2-dyn ortopt",
    True,
)
row(
    "minilm-l6",
    "bert",
    text(
        "BertModel",
        "BertConfig",
        vocabulary=30522,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        names=HIDDEN,
    ),
    "dynamo18 script14 q-dyn ortopt optimum-features",
    True,
)
row(
    "roberta-base-2",
    "roberta",
    text("RobertaForSequenceClassification", "RobertaConfig", **BASE, **CUT),
    ALL + " pt2-dyn@2.9 ortopt optimum-classes q-dyn",
)
row(
    "xlm-roberta-2",
    "roberta",
    text("XLMRobertaForTokenClassification", "XLMRobertaConfig", **BASE, **CUT, attention="eager"),
    "pt2 script17 dynamo22 ortopt",
)
row(
    "deberta-v2-2",
    "deberta",
    text(
        "DebertaV2ForSequenceClassification",
        "DebertaV2Config",
        **BASE,
        **CUT,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"]
    ),
    ALL + " pt2-dyn@2.6 optimum-classes",
)
row(
    "deberta-base-2",
    "deberta",
    text("DebertaModel", "DebertaConfig", **BASE, **CUT, relative_attention=True, pos_att_type=["c2p", "p2c"], names=HIDDEN),
    "pt2-dyn dynamo18 script17",
)
row(
    "distilbert-2",
    "distilbert",
    text("DistilBertForSequenceClassification", "DistilBertConfig", dim=768, n_heads=12, hidden_dim=3072, n_layers=2),
    ALL + " pt2-dyn@2.6 q-dyn ortopt optimum-classes q4-16-acc4",
)
row("distilbert", "distilbert", text("DistilBertModel", "DistilBertConfig", vocabulary=30522, names=HIDDEN), "q-dyn", True)
row(
    "albert-base",
    "albert",
    text("AlbertModel", "AlbertConfig", vocabulary=30000, embedding_size=128, **BASE, num_hidden_layers=12, names=HIDDEN),
    ALL + " pt2-core optimum-features",
    True,
)
row("mpnet-2", "mpnet", text("MPNetModel", "MPNetConfig", **BASE, **CUT, names=HIDDEN), ALL + " optimum-features")
row(
    "electra-small",
    "electra",
    text(
        "ElectraForPreTraining",
        "ElectraConfig",
        vocabulary=30522,
        embedding_size=128,
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
        num_hidden_layers=12,
    ),
    "pt2-dyn script17 q-dyn optimum-features",
    True,
)
row(
    "modernbert-2",
    "modernbert",
    text(
        "ModernBertModel",
        "ModernBertConfig",
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=1152,
        num_hidden_layers=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        names=HIDDEN,
    ),
    "pt2-dyn dynamo18 optimum-features",
)
row(
    "longformer-free-nystrom",
    "nystromformer",
    text(
        "NystromformerModel",
        "NystromformerConfig",
        **BASE,
        **CUT,
        names=HIDDEN,
        lengths=((1, 64), (2, 64)),
        segment_means_seq_len=64,
        num_landmarks=64
    ),
    "pt2 script17",
)
row("squeezebert-2", "squeezebert", text("SqueezeBertModel", "SqueezeBertConfig", **BASE, **CUT, names=HIDDEN), "pt2-dyn script17")
row(
    "fnet-2",
    "fnet",
    text(
        "FNetModel",
        "FNetConfig",
        hidden_size=768,
        intermediate_size=3072,
        **CUT,
        names=HIDDEN,
        masked=False,
        use_tpu_fourier_optimizations=False
    ),
    "pt2-dyn dynamo18",
)
row(
    "xlnet-2", "xlnet", text("XLNetModel", "XLNetConfig", d_model=768, n_layer=2, n_head=12, d_inner=3072, names=HIDDEN), "pt2-dyn script17"
)
