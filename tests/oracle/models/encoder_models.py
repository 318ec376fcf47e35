# SPDX-License-Identifier: GPL-3.0-or-later
"""More golden data of tests/core/model, made as models.py makes it: encoders after BERT, and OPT and BLOOM.

    python tests/oracle/models/encoder_models.py                     writes tests/oracle/models/data/*.json
    python tests/oracle/models/encoder_models.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import transformers as T

from models import case, ids, main

EVERYTHING = ("logits", "hidden", "attention")


def without(*keys, **more):
    """A configuration that lacks these keys and has others: an older generation's."""
    def change(config):
        for key in keys:
            config.pop(key, None)
        config |= more
    return change


def old_norms(key):
    return key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def bert_sizes(**changes):
    sizes = dict(vocab_size=41, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=27,
                 max_position_embeddings=20, type_vocab_size=2, layer_norm_eps=1e-5, hidden_act="relu")
    return {**sizes, **changes}


def padded(tokens, padding, *places):
    return [padding if place in places else (token if token != padding else padding + 1)
            for place, token in enumerate(tokens)]


def roberta_cases():
    yield case("roberta", T.RobertaForMaskedLM, T.RobertaConfig(**bert_sizes()),
               [padded(ids(9, 41), 1, 0, 4, 5), padded(ids(9, 41, 3), 1, 8)], keep=EVERYTHING,
               token_types=[[0] * 5 + [1] * 4, [1] * 9], lengths=[9, 6])
    yield case("roberta-old-names", T.RobertaForMaskedLM,
               T.RobertaConfig(**bert_sizes(pad_token_id=4, type_vocab_size=1, hidden_act="gelu_new")),
               [padded(ids(9, 41), 4, 3)], rename=old_norms,
               extra={"roberta.embeddings.position_ids": [1, 20], "roberta.pooler.dense.weight": [20, 20]},
               change_config=without("is_decoder", "add_cross_attention", position_embedding_type="absolute"))
    yield case("roberta-untied", T.RobertaForMaskedLM, T.RobertaConfig(**bert_sizes(tie_word_embeddings=False)),
               [ids(8, 41)])
    yield case("xlm-roberta-bf16", T.XLMRobertaForMaskedLM, T.XLMRobertaConfig(**bert_sizes()), [ids(8, 41)],
               file_type="BF16", shards=2)
    yield case("camembert", T.CamembertForMaskedLM, T.CamembertConfig(**bert_sizes()), [ids(6, 41)])
    yield case("data2vec-text", T.Data2VecTextForMaskedLM, T.Data2VecTextConfig(**bert_sizes()), [ids(7, 41)])
    yield case("bert-untied", T.BertForMaskedLM, T.BertConfig(**bert_sizes(tie_word_embeddings=False)), [ids(8, 41)])


def distilbert(**changes):
    sizes = dict(vocab_size=43, dim=18, n_layers=2, n_heads=3, hidden_dim=25, max_position_embeddings=16)
    return T.DistilBertConfig(**{**sizes, **changes})


def distilbert_cases():
    yield case("distilbert", T.DistilBertForMaskedLM, distilbert(), [ids(8, 43), ids(8, 43, 2)], keep=EVERYTHING,
               lengths=[8, 5])
    yield case("distilbert-old-names", T.DistilBertForMaskedLM,
               distilbert(activation="relu", sinusoidal_pos_embds=True, tie_word_embeddings=False), [ids(6, 43)],
               rename=lambda key: old_norms(key) if "embeddings" in key else key,
               extra={"distilbert.embeddings.position_ids": [1, 16]})


def albert(**changes):
    return T.AlbertConfig(**bert_sizes(embedding_size=12, num_hidden_layers=3, hidden_act="gelu_new", **changes))


def albert_cases():
    yield case("albert", T.AlbertForMaskedLM, albert(), [ids(7, 41), ids(7, 41, 3)], keep=EVERYTHING,
               token_types=[[0] * 5 + [1] * 2, [1] * 7], lengths=[7, 4])
    yield case("albert-groups-untied", T.AlbertForMaskedLM,
               albert(num_hidden_groups=2, inner_group_num=2, tie_word_embeddings=False), [ids(7, 41)],
               keep=("logits", "hidden"))
    yield case("albert-old-names", T.AlbertForMaskedLM, albert(hidden_dropout_prob=0), [ids(9, 41)], rename=old_norms,
               extra={"albert.embeddings.position_ids": [1, 20], "albert.pooler.weight": [20, 20]},
               change_config=without(net_structure_type=0, gap_size=0, num_memory_blocks=0, down_scale_factor=1))


def modernbert(**changes):
    sizes = dict(vocab_size=47, hidden_size=24, intermediate_size=17, num_hidden_layers=4, num_attention_heads=3,
                 max_position_embeddings=32, local_attention=6, norm_eps=1e-4, pad_token_id=0, eos_token_id=1,
                 bos_token_id=2, cls_token_id=2, sep_token_id=1)
    return T.ModernBertConfig(**{**sizes, **changes})


def old_modernbert(config):
    """As the first files of the hub: two thetas, and every n-th layer global."""
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config |= {"global_rope_theta": rope["full_attention"]["rope_theta"], "global_attn_every_n_layers": 2,
               "local_rope_theta": rope["sliding_attention"]["rope_theta"], "position_embedding_type": "absolute",
               "reference_compile": False, "repad_logits_with_grad": False, "embedding_dropout": 0.0}


def modernbert_cases():
    ropes = {"full_attention": {"rope_type": "default", "rope_theta": 700.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}
    yield case("modernbert", T.ModernBertForMaskedLM, modernbert(), [ids(11, 47), ids(11, 47, 3)], keep=EVERYTHING,
               lengths=[11, 8])
    yield case("modernbert-biases", T.ModernBertForMaskedLM,
               modernbert(norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False,
                          hidden_activation="silu", classifier_activation="gelu_pytorch_tanh", local_attention=5,
                          tie_word_embeddings=False, rope_parameters=ropes,
                          layer_types=["sliding_attention"] * 2 + ["full_attention", "sliding_attention"]),
               [ids(10, 47)], keep=("logits", "attention"))
    yield case("modernbert-old", T.ModernBertForMaskedLM,
               modernbert(rope_parameters=ropes, global_attn_every_n_layers=2, num_hidden_layers=3), [ids(12, 47)],
               change_config=old_modernbert)


def electra(**changes):
    return T.ElectraConfig(**bert_sizes(**{"embedding_size": 12, **changes}))


def electra_cases():
    yield case("electra", T.ElectraForMaskedLM, electra(), [ids(9, 41), ids(9, 41, 3)], keep=EVERYTHING,
               token_types=[[0] * 5 + [1] * 4, [1] * 9], lengths=[9, 6])
    yield case("electra-wide-untied-old", T.ElectraForMaskedLM,
               electra(embedding_size=20, tie_word_embeddings=False, type_vocab_size=1), [ids(8, 41)], rename=old_norms,
               extra={"electra.embeddings.position_ids": [1, 20]},
               change_config=without("is_decoder", "add_cross_attention", "tie_word_embeddings",
                                     position_embedding_type="absolute", tie_word_embeddings=False))
    yield case("electra-decoder", T.ElectraForCausalLM, electra(is_decoder=True), [ids(8, 41)])


def mpnet(**changes):
    sizes = dict(vocab_size=41, hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=27,
                 max_position_embeddings=70, layer_norm_eps=1e-5, hidden_act="relu", pad_token_id=4)
    return T.MPNetConfig(**{**sizes, **changes})


def mpnet_cases():
    yield case("mpnet", T.MPNetForMaskedLM, mpnet(), [padded(ids(11, 41), 1, 3, 4), padded(ids(11, 41, 3), 1, 8)],
               keep=EVERYTHING, lengths=[11, 7])
    yield case("mpnet-more-buckets-old", T.MPNetForMaskedLM,
               mpnet(relative_attention_num_buckets=40, tie_word_embeddings=False), [padded(ids(60, 41), 1)],
               rename=old_norms, extra={"mpnet.embeddings.position_ids": [1, 70]})


def eurobert(**changes):
    sizes = dict(vocab_size=43, hidden_size=24, intermediate_size=29, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-4, pad_token_id=1, bos_token_id=2,
                 eos_token_id=3, mask_token_id=4)
    return T.EuroBertConfig(**{**sizes, **changes})


def old_eurobert(config):
    """As on the hub: rope_theta beside rope_scaling, and what its own code reads."""
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope, "clf_pooling": "late"}
    config.pop("head_dim")


def eurobert_cases():
    yield case("eurobert", T.EuroBertForMaskedLM, eurobert(attention_bias=True, mlp_bias=True, hidden_act="gelu"),
               [ids(10, 43), ids(10, 43, 2)], keep=EVERYTHING, lengths=[10, 7])
    yield case("eurobert-tied-old", T.EuroBertForMaskedLM,
               eurobert(tie_word_embeddings=True, num_key_value_heads=4, rope_parameters={
                   "rope_type": "linear", "rope_theta": 900.0, "factor": 2.0}), [ids(12, 43)],
               change_config=old_eurobert)


def nomic_bert(**changes):
    sizes = dict(vocab_size=45, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=29,
                 max_position_embeddings=32, layer_norm_eps=1e-5)
    return T.NomicBertConfig(**{**sizes, **changes})


def hub_nomic_bert(config):
    """Beside its own keys those of the hub's files, which transformers does not read."""
    config.pop("rope_parameters")
    config |= {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_inner": 29, "n_positions": 8192, "rotary_emb_base": 1000,
               "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
               "rotary_scaling_factor": None, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
               "prenorm": False, "causal": False, "parallel_block": False, "use_rms_norm": False,
               "activation_function": "swiglu", "layer_norm_epsilon": 1e-5, "scale_attn_weights": True}


def nomic_bert_cases():
    yield case("nomic-bert", T.NomicBertForMaskedLM, nomic_bert(hidden_act="gelu"), [ids(10, 45), ids(10, 45, 2)],
               keep=EVERYTHING, token_types=[[0] * 5 + [1] * 5, [1] * 10], lengths=[10, 7], reloaded=True)
    yield case("nomic-bert-hub-keys-old", T.NomicBertForMaskedLM, nomic_bert(), [ids(12, 45)], reloaded=True,
               change_config=hub_nomic_bert)
    yield case("nomic-bert-renamed-untied", T.NomicBertForMaskedLM,
               nomic_bert(tie_word_embeddings=False, head_dim=8, rope_parameters={
                   "rope_type": "dynamic", "rope_theta": 300.0, "factor": 3.0}, max_position_embeddings=8),
               [ids(13, 45)], as_computed=True)


def esm(**changes):
    sizes = dict(vocab_size=33, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=29,
                 max_position_embeddings=32, layer_norm_eps=1e-5, pad_token_id=1, mask_token_id=32,
                 position_embedding_type="rotary", token_dropout=True)
    return T.EsmConfig(**{**sizes, **changes})


def masked(tokens, mask, *places):
    return [mask if place in places else token for place, token in enumerate(tokens)]


def esm_cases():
    # Frequencies are the file's, under the name that transformers saves them by.
    yield case("esm", T.EsmForMaskedLM, esm(emb_layer_norm_before=True),
               [masked(ids(10, 32), 32, 2, 7), masked(ids(10, 32, 2), 32, 3)], keep=EVERYTHING, lengths=[10, 7],
               reloaded=True)
    yield case("esm-old", T.EsmForMaskedLM, esm(), [masked(ids(12, 32), 32, 5)], reloaded=True,
               rename=lambda key: old_norms(key).replace("layer.*", "layer.0"),
               extra={"esm.encoder.layer.1.attention.self.rotary_embeddings.inv_freq": [3],
                      "esm.embeddings.position_ids": [1, 32]},
               change_config=without("tie_word_embeddings", "is_folding_model", "vocab_list", "esmfold_config"))
    yield case("esm-absolute-untied", T.EsmForMaskedLM,
               esm(position_embedding_type="absolute", token_dropout=False, pad_token_id=3, tie_word_embeddings=False),
               [padded(ids(11, 33), 3, 4, 5)], file_type="F16", reloaded=True)
    yield case("esm-no-frequencies", T.EsmForMaskedLM, esm(rope_theta=200.0, mask_token_id=5), [ids(12, 33)],
               as_computed=True, dropped="inv_freq")


def fnet(**changes):
    sizes = dict(vocab_size=29, hidden_size=18, num_hidden_layers=2, intermediate_size=25, max_position_embeddings=65,
                 type_vocab_size=3, layer_norm_eps=1e-5)
    return T.FNetConfig(**{**sizes, **changes})


def fnet_cases():
    # A padded batch would be transformed with its padding: texts are as long as each other, or alone.
    yield case("fnet", T.FNetForPreTraining, fnet(), [ids(11, 29), ids(11, 29, 3)], keep=("logits", "hidden"),
               token_types=[[0] * 4 + [2] * 7, [1] * 11])
    yield case("fnet-1", T.FNetForMaskedLM, fnet(), [ids(1, 29)])
    yield case("fnet-63", T.FNetForMaskedLM, fnet(hidden_act="relu"), [ids(63, 29)])
    yield case("fnet-64-untied", T.FNetForMaskedLM, fnet(tie_word_embeddings=False, hidden_size=17), [ids(64, 29)])
    yield case("fnet-65-old-bf16", T.FNetForMaskedLM, fnet(hidden_act="gelu"), [ids(65, 29)], file_type="BF16",
               rename=old_norms, extra={"fnet.embeddings.position_ids": [1, 65], "fnet.pooler.dense.weight": [18, 18]},
               change_config=without("type_vocab_size", "tie_word_embeddings", type_vocab_size=3))
    yield case("fnet-token-classes", T.FNetForTokenClassification, fnet(num_labels=3), [ids(9, 29)])
    yield case("fnet-text-classes", T.FNetForSequenceClassification, fnet(), [ids(1, 29, salt) for salt in range(3)])


def opt(**changes):
    sizes = dict(vocab_size=37, hidden_size=20, ffn_dim=27, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=16, word_embed_proj_dim=20)
    return T.OPTConfig(**{**sizes, **changes})


def opt_cases():
    yield case("opt", T.OPTForCausalLM, opt(), [ids(7, 37), ids(7, 37, 1)], keep=EVERYTHING, lengths=[7, 5])
    yield case("opt-small-embedding-post-norm", T.OPTForCausalLM, opt(word_embed_proj_dim=12, do_layer_norm_before=False),
               [ids(10, 37)], keep=("logits", "attention"))
    yield case("opt-plain-norms", T.OPTForCausalLM,
               opt(layer_norm_elementwise_affine=False, enable_bias=False, activation_function="gelu",
                   tie_word_embeddings=False), [ids(7, 37)])
    yield case("opt-old-file", T.OPTForCausalLM, opt(_remove_final_layer_norm=True), [ids(7, 37)], backbone_only=True,
               extra={"decoder.version": [1]}, change_config=without("enable_bias", "layer_norm_elementwise_affine"))


def bloom(**changes):
    sizes = dict(vocab_size=39, hidden_size=24, n_layer=2, n_head=6)
    return T.BloomConfig(**{**sizes, **changes})


def old_bloom(config):
    """As the files of the hub: sizes by other names, and what Megatron left."""
    config |= {"n_embed": config.pop("hidden_size"), "num_attention_heads": config.pop("n_head"), "seq_length": 16,
               "n_inner": None, "offset_alibi": 100, "attention_softmax_in_fp32": True, "skip_bias_add": True}


def bloom_cases():
    yield case("bloom", T.BloomForCausalLM, bloom(), [ids(7, 39), ids(7, 39, 1)], keep=EVERYTHING, lengths=[7, 5])
    yield case("bloom-old-file", T.BloomForCausalLM,
               bloom(n_head=4, apply_residual_connection_post_layernorm=True, layer_norm_epsilon=1e-3), [ids(20, 39)],
               backbone_only=True, change_config=old_bloom)


def cases():
    for family in (roberta_cases, distilbert_cases, albert_cases, modernbert_cases, electra_cases, mpnet_cases,
                   eurobert_cases, nomic_bert_cases, esm_cases, fnet_cases, opt_cases, bloom_cases):
        yield from family()


if __name__ == "__main__":
    main(cases)
