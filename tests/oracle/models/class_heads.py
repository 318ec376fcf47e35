# SPDX-License-Identifier: GPL-3.0-or-later
"""More golden data of tests/core/model, made as models.py makes it: encoders with heads for classes of texts and of tokens and
for answers in contexts, decoders with heads for classes of texts.

    python tests/oracle/models/class_heads.py                     writes tests/oracle/models/data/*-classes*.json, *-spans.json
    python tests/oracle/models/class_heads.py --checkpoints DIR   writes the cases as checkpoint folders (safetensors) too
"""

import transformers as T

from encoder_models import (albert, bert_sizes, distilbert, electra, esm, eurobert, modernbert, mpnet, nomic_bert, padded,
                            without)
from models import case, ids, llama, main

LENGTHS = [9, 6, 3]


def texts(vocabulary, padding):
    return [padded(ids(9, vocabulary, salt), padding) for salt in range(3)]


def of_texts(name, model_class, config, padding=None, **options):
    tokens = texts(config.vocab_size, config.pad_token_id if padding is None else padding)
    return case(name + "-text-classes", model_class, config, tokens, **{"lengths": LENGTHS, "of_texts": True, **options})


def of_tokens(name, model_class, config, padding=None, **options):
    tokens = texts(config.vocab_size, config.pad_token_id if padding is None else padding)
    return case(name + "-token-classes", model_class, config, tokens, **{"lengths": LENGTHS, **options})


def of_spans(name, model_class, config, **options):
    tokens = texts(config.vocab_size, config.pad_token_id)
    return case(name + "-spans", model_class, config, tokens, **{"lengths": LENGTHS, **options})


def roberta_like(name, prefix, **changes):
    config = getattr(T, prefix + "Config")(**bert_sizes(num_labels=3, **changes))
    yield of_texts(name, getattr(T, prefix + "ForSequenceClassification"), config)
    yield of_tokens(name, getattr(T, prefix + "ForTokenClassification"), config)


def of_decoder(name, prefix, config):
    """transformers finds the last token by pad_token_id, which no text has."""
    tokens = [padded(ids(9, config.vocab_size, salt), config.pad_token_id, *range(length, 9))
              for salt, length in enumerate(LENGTHS)]
    return case(name + "-text-classes", getattr(T, prefix + "ForSequenceClassification"), config, tokens, lengths=LENGTHS,
                of_texts=True)


def decoders():
    sizes = dict(vocab_size=37, hidden_size=24, intermediate_size=27, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=None, eos_token_id=5)
    yield of_decoder("llama", "Llama", llama(num_labels=3, pad_token_id=0))
    yield of_decoder("llama-number", "Llama", llama(num_labels=1, pad_token_id=0, problem_type="regression"))
    yield of_decoder("gpt2", "GPT2", T.GPT2Config(vocab_size=41, n_positions=32, n_embd=18, n_layer=2, n_head=3, bos_token_id=1,
                                                  eos_token_id=2, pad_token_id=0, num_labels=3))
    yield of_decoder("mistral", "Mistral", T.MistralConfig(**sizes, num_labels=2, sliding_window=8))  # padded rows see a token
    yield of_decoder("qwen2", "Qwen2", T.Qwen2Config(**sizes, num_labels=3))
    yield of_decoder("qwen3", "Qwen3", T.Qwen3Config(**sizes, num_labels=3, head_dim=6))


def cases():
    yield from decoders()
    types = [[0] * 5 + [1] * 4, [0] * 3 + [1] * 6, [1] * 9]
    bert = T.BertConfig(**bert_sizes(num_labels=3, hidden_act="gelu"))
    yield of_texts("bert", T.BertForSequenceClassification, bert, token_types=types)
    yield of_tokens("bert", T.BertForTokenClassification, bert, token_types=types)
    yield of_texts("bert-number", T.BertForSequenceClassification,
                   T.BertConfig(**bert_sizes(num_labels=1, problem_type="regression")))
    yield of_spans("bert", T.BertForQuestionAnswering, T.BertConfig(**bert_sizes(num_labels=2)), token_types=types)
    yield of_spans("roberta", T.RobertaForQuestionAnswering, T.RobertaConfig(**bert_sizes(num_labels=2)))
    for name, prefix, make in (("distilbert", "DistilBert", distilbert), ("electra", "Electra", electra),
                               ("albert", "Albert", albert)):
        yield of_spans(name, getattr(T, prefix + "ForQuestionAnswering"), make(num_labels=2))
    # As transformers 4 saved two classes, without names for them.
    yield of_texts("bert-unnamed", T.BertForSequenceClassification, T.BertConfig(**bert_sizes(num_labels=2)),
                   change_config=without("id2label", "label2id", problem_type="single_label_classification"))
    yield from roberta_like("roberta", "Roberta")
    yield from roberta_like("xlm-roberta", "XLMRoberta", type_vocab_size=1)
    yield from roberta_like("camembert", "Camembert")
    yield from roberta_like("data2vec", "Data2VecText")
    for name, prefix, make in (("distilbert", "DistilBert", distilbert), ("electra", "Electra", electra),
                               ("albert", "Albert", albert), ("mpnet", "MPNet", mpnet), ("esm", "Esm", esm),
                               ("nomic-bert", "NomicBert", nomic_bert)):
        options = {"reloaded": True} if name in ("esm", "nomic-bert") else {}
        padding = 1 if name == "mpnet" else None
        yield of_texts(name, getattr(T, prefix + "ForSequenceClassification"), make(num_labels=3), padding, **options)
        yield of_tokens(name, getattr(T, prefix + "ForTokenClassification"), make(num_labels=3), padding, **options)
    # Less padding, so that no window holds padding alone: transformers makes NaN of such rows.
    near = {"lengths": [9, 7, 6]}
    yield of_texts("modernbert", T.ModernBertForSequenceClassification, modernbert(num_labels=3), **near)
    yield of_texts("modernbert-mean", T.ModernBertForSequenceClassification,
                   modernbert(num_labels=4, classifier_pooling="mean", classifier_bias=True, norm_bias=True,
                              classifier_activation="silu", decoder_bias=False), **near)
    yield of_tokens("modernbert", T.ModernBertForTokenClassification, modernbert(num_labels=3), **near)
    for pooling in ("bos", "mean", "late"):
        yield of_texts("eurobert-" + pooling, T.EuroBertForSequenceClassification,
                       eurobert(num_labels=3, classifier_pooling=pooling))
    yield of_tokens("eurobert", T.EuroBertForTokenClassification, eurobert(num_labels=3))


if __name__ == "__main__":
    main(cases)
