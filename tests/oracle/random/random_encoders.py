# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints of the encoders after BERT, of OPT and of BLOOM, for the acceptance test. See random_models.py."""

from pathlib import Path

import safetensors.torch
import torch
import transformers as T

from random_models import Case, edit_config, randomise, rename_tensors, with_options

LIKE_BERT = dict(
    vocab_size=109, hidden_size=45, num_hidden_layers=3, num_attention_heads=5, intermediate_size=77,
    max_position_embeddings=260, type_vocab_size=2, layer_norm_eps=1e-5, hidden_act="gelu_new",
)
FAMILIES = {
    "roberta": (T.RobertaForMaskedLM, T.RobertaModel, T.RobertaConfig, LIKE_BERT),
    "xlm-roberta": (T.XLMRobertaForMaskedLM, T.XLMRobertaModel, T.XLMRobertaConfig, LIKE_BERT),
    "camembert": (T.CamembertForMaskedLM, T.CamembertModel, T.CamembertConfig, LIKE_BERT),
    "data2vec-text": (T.Data2VecTextForMaskedLM, T.Data2VecTextModel, T.Data2VecTextConfig, LIKE_BERT),
    "bert": (T.BertForMaskedLM, T.BertModel, T.BertConfig, LIKE_BERT),
    "distilbert": (T.DistilBertForMaskedLM, T.DistilBertModel, T.DistilBertConfig, dict(
        vocab_size=107, dim=42, n_layers=3, n_heads=3, hidden_dim=65, max_position_embeddings=256)),
    "albert": (T.AlbertForMaskedLM, T.AlbertModel, T.AlbertConfig, LIKE_BERT | dict(embedding_size=26)),
    "modernbert": (T.ModernBertForMaskedLM, T.ModernBertModel, T.ModernBertConfig, dict(
        vocab_size=113, hidden_size=40, intermediate_size=51, num_hidden_layers=4, num_attention_heads=5,
        max_position_embeddings=256, local_attention=33, norm_eps=1e-4, pad_token_id=0, eos_token_id=1, bos_token_id=2,
        cls_token_id=2, sep_token_id=1)),
    "electra": (T.ElectraForMaskedLM, T.ElectraModel, T.ElectraConfig, LIKE_BERT | dict(embedding_size=26)),
    "mpnet": (T.MPNetForMaskedLM, T.MPNetModel, T.MPNetConfig, {
        key: value for key, value in LIKE_BERT.items() if key != "type_vocab_size"}),
    "eurobert": (T.EuroBertForMaskedLM, T.EuroBertModel, T.EuroBertConfig, dict(
        vocab_size=111, hidden_size=48, intermediate_size=67, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-4, pad_token_id=1, bos_token_id=2,
        eos_token_id=3, mask_token_id=4)),
    "nomic_bert": (T.NomicBertForMaskedLM, T.NomicBertModel, T.NomicBertConfig, dict(
        vocab_size=109, hidden_size=42, num_hidden_layers=3, num_attention_heads=3, intermediate_size=61,
        max_position_embeddings=256, layer_norm_eps=1e-5)),
    "esm": (T.EsmForMaskedLM, T.EsmModel, T.EsmConfig, dict(
        vocab_size=37, hidden_size=42, num_hidden_layers=3, num_attention_heads=3, intermediate_size=61,
        max_position_embeddings=260, layer_norm_eps=1e-5, pad_token_id=1, mask_token_id=32,
        position_embedding_type="rotary", token_dropout=True)),
    "fnet": (T.FNetForMaskedLM, T.FNetModel, T.FNetConfig, {
        key: value for key, value in LIKE_BERT.items() if key != "num_attention_heads"}),
    "opt": (T.OPTForCausalLM, T.OPTModel, T.OPTConfig, dict(
        vocab_size=103, hidden_size=36, ffn_dim=59, num_hidden_layers=3, num_attention_heads=3,
        max_position_embeddings=256)),
    "bloom": (T.BloomForCausalLM, T.BloomModel, T.BloomConfig, dict(
        vocab_size=101, hidden_size=45, n_layer=3, n_head=5, layer_norm_epsilon=1e-4)),
}


def settle(model, gain):
    """Queries and keys that randomise does not know by their names."""
    names = ("q_lin.weight", "k_lin.weight", "attention.query.weight", "attention.key.weight", "attn.q.weight",
             "attn.k.weight")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(names):
                parameter *= gain
            elif name.endswith("Wqkv.weight"):
                parameter[: 2 * parameter.shape[0] // 3] *= gain
            elif name.endswith("query_key_value.weight"):
                parameter.unflatten(0, (model.config.num_attention_heads, 3, -1))[:, :2] *= gain
    return model


def encoder(folder, seed, family, head=True, dtype=torch.float32, shard=None, gain=1.6, change=None,
            as_computed=False, **options):
    with_head, alone, config_class, sizes = FAMILIES[family]
    model = (with_head if head else alone)(config_class(**(sizes | options)))
    settle(randomise(model, seed, gain), gain).to(dtype).save_pretrained(
        folder, max_shard_size=shard or "1GB", save_original_format=not as_computed)
    if change:
        change(folder)


def old_norms(name):
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def old_bert_like(prefix):
    """As the first files of the hub: gamma and beta, buffers and a pooler left over, keys that are gone since."""

    def change(folder):
        rename_tensors(folder, old_norms, {
            f"{prefix}.embeddings.position_ids": torch.arange(260)[None],
            f"{prefix}.embeddings.token_type_ids": torch.zeros(1, 260, dtype=torch.int64),
            f"{prefix}.pooler.dense.weight": torch.ones(45, 45)})
        edit_config(folder, lambda config: config.update(
            position_embedding_type="absolute", output_past=True, gradient_checkpointing=False))

    return change


def bare(prefix, extra=None):
    return lambda folder: rename_tensors(folder, lambda name: name.removeprefix(prefix), extra)


def old_modernbert(folder):
    def change(config):
        ropes = config.pop("rope_parameters")
        config.pop("layer_types")
        config |= {"global_rope_theta": ropes["full_attention"]["rope_theta"],
                   "local_rope_theta": ropes["sliding_attention"]["rope_theta"], "global_attn_every_n_layers": 2,
                   "position_embedding_type": "absolute", "reference_compile": None}

    edit_config(folder, change)


def modernbert_scaled(folder):
    """rope_scaling of an older file is meant for both kinds of layers."""
    old_modernbert(folder)
    edit_config(folder, lambda config: config.update(rope_scaling={"rope_type": "linear", "factor": 2.0}))


def old_eurobert(folder):
    def change(config):
        rope = config.pop("rope_parameters")
        config |= {"rope_theta": rope["rope_theta"], "rope_scaling": None, "clf_pooling": "late", "use_cache": True}

    edit_config(folder, change)


def hub_nomic_bert(folder):
    """As on the hub, with keys that transformers does not read, and without a prefix."""

    def change(config):
        config.pop("rope_parameters")
        config |= {"n_embd": 42, "n_layer": 3, "n_head": 3, "n_inner": 61, "n_positions": 8192, "rotary_emb_base": 1000,
                   "rotary_emb_fraction": 1.0, "rotary_emb_scale_base": None, "qkv_proj_bias": False, "prenorm": False,
                   "activation_function": "swiglu", "use_flash_attn": True}

    edit_config(folder, change)
    rename_tensors(folder, lambda name: name.removeprefix("nomic_bert."))


def rounded_frequencies(folder):
    """As ESM-2 on the hub: frequencies in every layer, which have been in float16."""
    rotary = "attention.self.rotary_embeddings.inv_freq"
    path = Path(folder) / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    frequencies = tensors.pop(f"esm.encoder.layer.*.{rotary}").half().float()
    tensors |= {f"esm.encoder.layer.{layer}.{rotary}": frequencies.clone() for layer in range(3)}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def old_bloom(folder):
    """As on the hub: sizes by their first names, and Megatron's settings."""

    def change(config):
        config |= {"n_embed": config.pop("hidden_size"), "num_attention_heads": config.pop("n_head"), "n_inner": None,
                   "seq_length": 256, "offset_alibi": 100, "masked_softmax_fusion": True, "bias_dropout_fusion": True}

    edit_config(folder, change)
    rename_tensors(folder, lambda name: name.removeprefix("transformer."))


def cases():
    def case(name, family, lengths=None, arguments=(), **options):
        more = {"lengths": lengths} if lengths else {}
        return Case(name, with_options(encoder, family=family, **options), arguments=list(arguments), **more)

    bf16, f16 = torch.bfloat16, torch.float16
    ropes = {"full_attention": {"rope_type": "default", "rope_theta": 3000.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 200.0}}
    yarn = {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 4.0, "original_max_position_embeddings": 64}
    windows, whole = "sliding_attention", "full_attention"
    return [
        case("bert-untied", "bert", tie_word_embeddings=False, lengths=(65, 200)),
        case("roberta", "roberta"),
        case("roberta-padding-inside", "roberta", pad_token_id=7, vocab_size=31),
        case("roberta-no-head-old-names", "roberta", head=False, lengths=(1, 65), type_vocab_size=1,
             change=old_bert_like("roberta")),
        case("roberta-old-names", "roberta", change=old_bert_like("roberta")),
        case("roberta-bf16-sharded-untied", "roberta", dtype=bf16, shard="20KB", tie_word_embeddings=False),
        case("xlm-roberta", "xlm-roberta", type_vocab_size=1, hidden_act="gelu"),
        case("camembert-f16", "camembert", dtype=f16, hidden_act="silu"),
        case("data2vec-text", "data2vec-text", lengths=(65, 2)),
        case("distilbert", "distilbert"),
        case("distilbert-no-head", "distilbert", head=False, sinusoidal_pos_embds=True, activation="relu"),
        case("distilbert-bf16-sharded-untied", "distilbert", dtype=bf16, shard="20KB", tie_word_embeddings=False),
        case("albert", "albert"),
        case("albert-groups-bf16-sharded", "albert", dtype=bf16, shard="20KB", num_hidden_layers=5,
             num_hidden_groups=3, lengths=(65, 200)),
        case("albert-inner-layers-untied", "albert", num_hidden_groups=2, inner_group_num=2, num_hidden_layers=3,
             tie_word_embeddings=False, hidden_act="relu"),
        case("albert-no-head", "albert", head=False, embedding_size=45),
        case("modernbert", "modernbert"),
        case("modernbert-layer-types-biases", "modernbert", layer_types=[windows, whole, whole, windows],
             norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, hidden_activation="silu",
             classifier_activation="relu", decoder_bias=False, rope_parameters=ropes),
        case("modernbert-old-config", "modernbert", change=old_modernbert, rope_parameters=ropes),
        case("modernbert-old-scaling", "modernbert", change=modernbert_scaled, lengths=(65, 200)),
        case("modernbert-bf16-sharded-untied", "modernbert", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             local_attention=128, rope_parameters={whole: yarn, windows: ropes[windows]}),
        case("modernbert-no-head", "modernbert", head=False, local_attention=1, lengths=(1, 65)),
        case("modernbert-long", "modernbert", max_position_embeddings=2048, num_hidden_layers=2, local_attention=200,
             lengths=(1100,)),
        case("electra", "electra"),
        case("electra-no-head-wide", "electra", head=False, embedding_size=45, hidden_act="gelu", lengths=(1, 65)),
        case("electra-old-names-untied", "electra", change=old_bert_like("electra"), tie_word_embeddings=False),
        case("electra-bf16-sharded", "electra", dtype=bf16, shard="20KB", type_vocab_size=1),
        case("mpnet", "mpnet"),
        case("mpnet-padding-inside", "mpnet", vocab_size=31, pad_token_id=7),
        case("mpnet-more-buckets-old-names", "mpnet", relative_attention_num_buckets=40, lengths=(65, 200),
             change=old_bert_like("mpnet")),
        case("mpnet-bf16-sharded-untied", "mpnet", dtype=bf16, shard="20KB", tie_word_embeddings=False),
        case("mpnet-no-head", "mpnet", head=False, hidden_act="relu", lengths=(1, 65)),
        case("mpnet-long", "mpnet", num_hidden_layers=1, max_position_embeddings=1200, lengths=(1100,)),
        case("eurobert", "eurobert"),
        case("eurobert-biases-old-config", "eurobert", attention_bias=True, mlp_bias=True, hidden_act="gelu",
             num_key_value_heads=6, change=old_eurobert),
        case("eurobert-bf16-sharded-tied-yarn", "eurobert", dtype=bf16, shard="20KB", tie_word_embeddings=True,
             rope_parameters=yarn, lengths=(65, 200)),
        case("eurobert-no-head", "eurobert", head=False, num_key_value_heads=1, lengths=(1, 65)),
        case("nomic-bert", "nomic_bert"),
        case("nomic-bert-hub", "nomic_bert", head=False, change=hub_nomic_bert, lengths=(1, 65, 200)),
        case("nomic-bert-own-names", "nomic_bert", as_computed=True, head_dim=10, hidden_act="gelu_new"),
        case("nomic-bert-bf16-sharded-untied", "nomic_bert", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             rope_parameters={**yarn, "rope_theta": 500.0}),
        case("fnet", "fnet"),
        case("fnet-old-names-untied", "fnet", change=old_bert_like("fnet"), tie_word_embeddings=False, hidden_act="gelu"),
        case("fnet-bf16-sharded-long", "fnet", dtype=bf16, shard="20KB", type_vocab_size=4, max_position_embeddings=700,
             lengths=(65, 513)),
        case("fnet-no-head", "fnet", head=False, lengths=(1, 63)),
        # Few pieces and no short text: masked tokens are in every one, and never alone.
        case("esm", "esm", emb_layer_norm_before=True, lengths=(63, 64, 65, 200)),
        case("esm-rounded-frequencies", "esm", change=rounded_frequencies, lengths=(65, 200)),
        case("esm-absolute-f16", "esm", dtype=f16, position_embedding_type="absolute", pad_token_id=7,
             token_dropout=False),
        case("esm-bf16-sharded-untied", "esm", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             token_dropout=False, rope_theta=300.0),
        case("esm-own-names-no-head", "esm", as_computed=True, head=False, lengths=(64, 65)),
        case("opt", "opt"),
        case("opt-post-norm-small-embedding", "opt", do_layer_norm_before=False, word_embed_proj_dim=20),
        case("opt-no-affine-no-bias", "opt", layer_norm_elementwise_affine=False, enable_bias=False,
             activation_function="gelu", word_embed_proj_dim=50),
        case("opt-old-names", "opt", _remove_final_layer_norm=True, lengths=(65, 200), change=bare("model.", {
            "decoder.version": torch.ones(1)})),
        case("opt-bf16-sharded-untied", "opt", dtype=bf16, shard="20KB", tie_word_embeddings=False,
             num_attention_heads=4),
        case("bloom", "bloom"),
        case("bloom-power-of-two-old-config", "bloom", hidden_size=48, n_head=8, change=old_bloom),
        case("bloom-residual-after-norm", "bloom", apply_residual_connection_post_layernorm=True, hidden_size=48,
             n_head=12, lengths=(65, 200)),
        case("bloom-f16-sharded-untied", "bloom", dtype=f16, shard="20KB", tie_word_embeddings=False, n_head=1),
        case("bloom-beyond-positions", "bloom", n_head=3, seq_length=100, arguments=["--beyond-positions"]),
        case("bloom-long", "bloom", n_layer=1, lengths=(1100,)),
    ]
