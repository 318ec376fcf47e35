// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/sentencepiece_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/text/text.h"
#include "core/tokenizer/files/sentencepiece_model.h"
#include "core/tokenizer/files/settings.h"
#include "core/tokenizer/files/vocabulary_files.h"

namespace headscope::tokenizer {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

enum class Kind { marian, m2m_100, mbart, mbart_50, pegasus, t5, unknown };

struct KindName {
    std::string_view name;
    Kind kind;
};

constexpr std::array class_names = {
    KindName{"MarianTokenizer", Kind::marian},   KindName{"M2M100Tokenizer", Kind::m2m_100},
    KindName{"MBartTokenizer", Kind::mbart},     KindName{"MBart50Tokenizer", Kind::mbart_50},
    KindName{"PegasusTokenizer", Kind::pegasus}, KindName{"T5Tokenizer", Kind::t5},
};
constexpr std::array model_types = {
    KindName{"marian", Kind::marian},   KindName{"m2m_100", Kind::m2m_100}, KindName{"mbart", Kind::mbart},
    KindName{"pegasus", Kind::pegasus}, KindName{"t5", Kind::t5},           KindName{"mt5", Kind::t5},
};

constexpr std::array<const char*, 5> model_names = {"source.spm", "sentencepiece.bpe.model", "spiece.model",
                                                    "tokenizer.model", "spm.model"};
constexpr std::int64_t most_extra = 10'000;  ///< tokens that are numbered beside the model's; real ones have some 100
constexpr std::string_view space = "\xE2\x96\x81";

// In the order of their ids. mBART has the first 25.
constexpr std::array<const char*, 52> mbart_languages = {
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT",
    "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK",
    "tr_TR", "vi_VN", "zh_CN", "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE",
    "km_KH", "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN",
    "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};
constexpr std::size_t mbart_25 = 25;
constexpr std::array<const char*, 100> m2m_languages = {
    "af", "am", "ar", "ast", "az", "ba",  "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et",  "fa", "ff",  "fi", "fr", "fy", "ga", "gd", "gl", "gu",  "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id",  "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km",  "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv",  "mg", "mk",  "ml", "mn", "mr", "ms", "my", "ne", "nl",  "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt",  "ro", "ru",  "sd", "si", "sk", "sl", "so", "sq", "sr",  "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn",  "tr", "uk",  "ur", "uz", "vi", "wo", "xh", "yi", "yo",  "zh", "zu"};
constexpr std::array<const char*, 8> wmt21_languages = {"en", "ha", "is", "ja", "cs", "ru", "zh", "de"};

fs::path model_file(const fs::path& folder) {
    for (const char* name : model_names) {
        if (ends_at_regular_file(folder / name)) return folder / name;
    }
    return {};
}

template <std::size_t count>
Kind find_kind(const std::array<KindName, count>& names, std::string_view name) {
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const KindName& entry) { return entry.name == name; });
    return found == names.end() ? Kind::unknown : found->kind;
}

// transformers' choice for umT5 depends on the model's name: its files do not determine a kind.
Kind kind_of(const Settings& settings) {
    const std::string name = settings.tokenizer_class(), type = settings.model_type();
    if (type == "umt5") return Kind::unknown;
    return name.empty() ? find_kind(model_types, type) : find_kind(class_names, name);
}

/// Pieces by name with their scores, numbered in order, as a unigram model has them.
class PieceList {
public:
    void add(const std::string& piece, double score) { list_.push_back(json::array({piece, score})); }
    json take() { return std::move(list_); }

private:
    json list_ = json::array();
};

class Document {
public:
    Document(const fs::path& folder, const Settings& settings, Kind kind, Side side)
        : folder_(folder), settings_(settings), kind_(kind), side_(side), named_(settings.named(default_tokens(kind))) {
        const bool mbart = kind == Kind::mbart || kind == Kind::mbart_50;
        if (mbart && settings.is_plain("mask_token")) named_.at("mask_token").strip_left = true;
    }

    json make() {
        const bool apart = kind_ == Kind::marian || kind_ == Kind::m2m_100;
        const char* name = kind_ == Kind::marian                         ? "source.spm"
                           : kind_ == Kind::pegasus || kind_ == Kind::t5 ? "spiece.model"
                                                                         : "sentencepiece.bpe.model";
        if (kind_ == Kind::marian && side_ == Side::target) name = "target.spm";
        path_ = folder_ / name;
        model_ = read_sentencepiece_model(path_);
        using Type = SentencePieceModel::Type;
        const bool plain = model_.type == Type::unigram || (kind_ == Kind::m2m_100 && model_.type == Type::bpe);
        refuse_unless(plain, kind_ == Kind::m2m_100 ? "a unigram model or a BPE" : "a unigram model",
                      "one of another type");
        refuse_unless(!model_.byte_fallback, "no bytes in the place of unknown characters", "byte_fallback");
        return apart ? with_vocabulary() : of_pieces();
    }

private:
    using PieceKind = SentencePieceModel::Kind;

    static Settings::Named default_tokens(Kind kind) {
        Settings::Named named{{"eos_token", {.content = "</s>"}},
                              {"unk_token", {.content = "<unk>"}},
                              {"pad_token", {.content = "<pad>"}}};
        if (kind == Kind::pegasus) {
            named["mask_token"] = {.content = "<mask_2>"};
            named["mask_token_sent"] = {.content = "<mask_1>"};
        }
        if (kind == Kind::marian || kind == Kind::t5 || kind == Kind::pegasus) return named;
        named["bos_token"] = {.content = "<s>"};
        named["sep_token"] = {.content = "</s>"};
        if (kind == Kind::m2m_100) return named;
        named["cls_token"] = {.content = "<s>"};
        named["mask_token"] = {.content = "<mask>", .strip_left = true};
        return named;
    }

    void refuse_unless(bool plain, const std::string& expected, const std::string& found) const {
        if (!plain)
            throw Error(ErrorCode::unsupported, escaped(path_.string()),
                        "expected " + expected + ", as its kind of tokenizer has", "found " + found);
    }

    std::string text(const char* name) const {
        const auto token = named_.find(name);
        if (token == named_.end()) {
            throw Error(ErrorCode::mismatch, escaped((folder_ / "tokenizer_config.json").string()) + ": " + name,
                        "expected a token, which this kind of tokenizer needs", "found null");
        }
        return token->second.content;
    }

    static std::string shown(const SentencePieceModel::Piece& piece) { return '"' + escaped(piece.text, 60) + '"'; }

    // Marian, M2M100: what the model cuts is looked up in vocab.json.
    json with_vocabulary() {
        for (const SentencePieceModel::Piece& piece : model_.pieces)
            refuse_unless(piece.kind != PieceKind::user_defined, "no symbols of its user's", shown(piece));
        refuse_unless(model_.spaces_escaped && !model_.space_is_suffix, "spaces before words", "others");
        const bool marian = kind_ == Kind::marian;
        refuse_unless(model_.dummy_prefix || !marian, "a space before the text", "none");
        const bool own = marian && side_ == Side::target && settings_.flag("separate_vocabs", false);
        json ids = read_vocabulary_json(folder_ / (own ? "target_vocab.json" : "vocab.json"));
        if (own) expect_same_ends(ids);
        for (const auto& [piece, id] : ids.items()) {
            if (id.is_number_integer()) ids_[piece] = id;
        }
        std::vector<std::string> languages;
        if (!marian) languages = m2m_tokens();
        const json added = added_tokens(ids.size(), languages);
        json rules{{"type", "SentencePiece"},
                   {"add_dummy_prefix", model_.dummy_prefix},
                   {"remove_extra_whitespaces", model_.extra_spaces_removed},
                   {"language_codes", marian}};
        if (!model_.character_map.empty()) rules["precompiled_charsmap"] = character_map();
        PieceList pieces;
        const bool merges = model_.type == SentencePieceModel::Type::bpe;
        for (const SentencePieceModel::Piece& piece : model_.pieces) {
            refuse_unless(!merges || piece.kind != PieceKind::unused, "no unused pieces", shown(piece));
            if (piece.kind != PieceKind::normal) continue;
            refuse_unless(!merges || piece.text.find(space, 1) == std::string::npos, "no pieces of several words",
                          shown(piece));
            pieces.add(piece.text, piece.score);
        }
        std::vector<std::string> before;
        if (!marian) before.push_back(language("__", "en", "__", languages));
        return {{"added_tokens", added},
                {"normalizer", rules},
                {"post_processor", around(before, {text("eos_token")})},
                {"decoder", stripped()},
                {"model",
                 {{"type", merges ? "SentencePieceBPE" : "SentencePiece"},
                  {"vocab", pieces.take()},
                  {"ids", std::move(ids)},
                  {"unk_token", text("unk_token")},
                  {"language_codes", marian}}}};
    }

    /// transformers ends targets with the id that the end of the text has among the source's.
    void expect_same_ends(const json& target) const {
        const std::string end = text("eos_token");
        const json source = read_vocabulary_json(folder_ / "vocab.json");
        if (source.value(end, json()) == target.value(end, json())) return;
        throw Error(ErrorCode::unsupported, escaped((folder_ / "target_vocab.json").string()),
                    "expected the id of \"" + escaped(end, 60) + "\" to be that of vocab.json", "found another");
    }

    std::vector<std::string> m2m_tokens() const {
        const std::string codes = settings_.text("language_codes", "m2m100");
        std::vector<std::string> tokens;
        const auto add = [&tokens](const char* code) { tokens.push_back("__" + std::string(code) + "__"); };
        if (codes == "wmt21")
            std::for_each(wmt21_languages.begin(), wmt21_languages.end(), add);
        else if (codes == "m2m100")
            std::for_each(m2m_languages.begin(), m2m_languages.end(), add);
        else
            throw Error(ErrorCode::unsupported, setting("language_codes"), "expected m2m100 or wmt21",
                        "found \"" + escaped(codes, 60) + '"');
        return tokens;
    }

    // mBART, PEGASUS, T5: the model's pieces are the vocabulary, with others before or behind them.
    json of_pieces() {
        PieceList pieces;
        std::size_t count = 0, first = 0;
        const auto add = [&](const std::string& piece, double score) {
            ids_.try_emplace(piece, count++);
            pieces.add(piece, score);
        };
        std::vector<std::string> languages, special;
        if (kind_ == Kind::mbart || kind_ == Kind::mbart_50) {
            const std::size_t known = kind_ == Kind::mbart ? mbart_25 : mbart_languages.size();
            languages.assign(mbart_languages.begin(), mbart_languages.begin() + static_cast<std::ptrdiff_t>(known));
            for (const char* name :
                 {kind_ == Kind::mbart ? "bos_token" : "cls_token", "pad_token", "eos_token", "unk_token"})
                add(text(name), 0);
            first = 3;
        } else if (kind_ == Kind::pegasus) {
            first = add_pegasus(add, special);
        }
        for (std::size_t i = first; i < model_.pieces.size(); ++i) add(model_.pieces[i].text, model_.pieces[i].score);
        for (const std::string& code : languages) add(code, 0);
        if (!languages.empty()) add(text("mask_token"), 0);
        if (kind_ == Kind::t5) {
            const std::int64_t extra = settings_.number("extra_ids", 100, 0, most_extra);
            for (std::int64_t i = extra - 1; i >= 0; --i) {
                special.push_back("<extra_id_" + std::to_string(i) + ">");
                add(special.back(), 0);
            }
        }
        special.insert(special.end(), languages.begin(), languages.end());
        const json added = added_tokens(count, special);
        json document{{"added_tokens", added}, {"decoder", metaspace()}, {"post_processor", post_processor(languages)}};
        if (json rules = normalizer(); !rules.is_null()) document["normalizer"] = std::move(rules);
        document["pre_tokenizer"] = metaspace();
        if (kind_ == Kind::mbart || kind_ == Kind::t5) {
            document["pre_tokenizer"] = {{"type", "Sequence"},
                                         {"pretokenizers", json::array({{{"type", "WhitespaceSplit"}}, metaspace()})}};
        }
        document["model"] = {{"type", "Unigram"}, {"unk_id", unknown_id()}, {"vocab", pieces.take()}};
        return document;
    }

    /// Tokens before the pieces; the first `return` of the model's are left out.
    template <class Add>
    std::size_t add_pegasus(const Add& add, std::vector<std::string>& special) const {
        add(text("pad_token"), 0);
        add(text("eos_token"), 0);
        // As the converter has it: where the file names neither, the other way round.
        const bool said = settings_.has("mask_token"), sent_said = settings_.has("mask_token_sent");
        const std::string mask = said ? text("mask_token") : "<mask_1>";
        const std::string sent = sent_said ? text("mask_token_sent") : "<mask_2>";
        add(mask, 0);
        if (sent != mask) add(sent, 0);
        for (std::int64_t i = 2; i < settings_.number("offset", 103, 2, most_extra); ++i) {
            special.push_back("<unk_" + std::to_string(i) + ">");
            add(special.back(), -100);
        }
        return 2;
    }

    std::size_t unknown_id() const {
        if (kind_ == Kind::t5) {
            refuse_unless(model_.pieces.size() > 2, "more than two pieces", std::to_string(model_.pieces.size()));
            return 2;
        }
        if (kind_ != Kind::pegasus) return 3;
        const auto id = ids_.find(text("unk_token"));
        refuse_unless(id != ids_.end(), "the piece " + text("unk_token"), "none");
        return id->second.get<std::size_t>();
    }

    json normalizer() const {
        json members = json::array();
        if (kind_ != Kind::mbart && !model_.character_map.empty())
            members.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", character_map()}});
        const auto replace = [&members](const char* pattern) {
            members.push_back({{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", " "}});
        };
        if (kind_ == Kind::pegasus && model_.character_map.empty()) replace("\\n");
        if (kind_ == Kind::pegasus || kind_ == Kind::mbart_50) replace(" {2,}");
        if (members.empty()) return {};
        return {{"type", "Sequence"}, {"normalizers", std::move(members)}};
    }

    json post_processor(const std::vector<std::string>& languages) const {
        if (languages.empty()) return around({}, {kind_ == Kind::t5 ? "</s>" : text("eos_token")});
        const std::string code = language("", "en_XX", "", languages);
        if (kind_ == Kind::mbart_50) return around({code}, {text("eos_token")});
        return around({}, {text("eos_token"), code});
    }

    /// The token of the language that the side is in.
    std::string language(const std::string& before, const std::string& otherwise, const std::string& behind,
                         const std::vector<std::string>& known) const {
        const std::string source = settings_.text("src_lang", otherwise);
        const char* const key = side_ == Side::target && settings_.has("tgt_lang") ? "tgt_lang" : "src_lang";
        const std::string token = before + settings_.text(key, source) + behind;
        if (std::find(known.begin(), known.end(), token) == known.end()) {
            throw Error(ErrorCode::mismatch, setting(key), "expected a language of this kind of tokenizer",
                        "found \"" + escaped(settings_.text(key, source), 60) + '"');
        }
        return token;
    }

    std::string setting(const std::string& key) const {
        return escaped((folder_ / "tokenizer_config.json").string()) + ": " + key;
    }

    json character_map() const { return json::binary({model_.character_map.begin(), model_.character_map.end()}); }

    static json metaspace() {
        return {{"type", "Metaspace"}, {"replacement", space}, {"prepend_scheme", "always"}, {"split", true}};
    }

    /// As transformers' classes after sentencepiece.
    static json stripped() {
        const json strip{{"type", "Strip"}, {"content", " "}, {"start", 1 << 30}, {"stop", 1 << 30}};
        return {{"type", "Sequence"}, {"decoders", json::array({metaspace(), {{"type", "Fuse"}}, strip})}};
    }

    /// Special tokens of the files, of the model, and `more`; those that the vocabulary lacks are numbered on from
    /// `next`, `more` first.
    json added_tokens(std::size_t next, const std::vector<std::string>& more) {
        std::vector<TokenEntry> tokens;
        std::unordered_set<std::string> known{""};
        const auto add = [&](const TokenEntry& token) {
            if (known.insert(token.content).second) tokens.push_back(token);
        };
        const std::vector<TokenEntry> said = settings_.tokens(named_);
        for (const TokenEntry& token : said) {
            if (ids_.count(token.content) != 0) add(token);
        }
        for (const std::string& content : more) {
            const auto of_file = std::find_if(said.begin(), said.end(),
                                              [&](const TokenEntry& token) { return token.content == content; });
            add(of_file == said.end() ? TokenEntry{.content = content} : *of_file);
        }
        std::for_each(said.begin(), said.end(), add);
        // Marian and M2M100 leave these to sentencepiece, which never finds them in a text.
        if (kind_ != Kind::marian && kind_ != Kind::m2m_100) {
            for (const SentencePieceModel::Piece& piece : model_.pieces) {
                const bool control = piece.kind == PieceKind::control;
                if ((control || piece.kind == PieceKind::user_defined) && ids_.count(piece.text) != 0)
                    add({.content = piece.text, .normalized = false, .special = control});
            }
        }
        json list = json::array();
        for (const TokenEntry& token : tokens) {
            if (ids_.try_emplace(token.content, next).second) ++next;
            list.push_back({{"id", 0},
                            {"content", token.content},
                            {"single_word", token.single_word},
                            {"lstrip", token.strip_left},
                            {"rstrip", token.strip_right},
                            {"normalized", token.normalized.value_or(!token.special)},
                            {"special", token.special}});
        }
        return list;
    }

    json around(const std::vector<std::string>& before, const std::vector<std::string>& behind) const {
        json special = json::object(), single = json::array();
        const auto put = [&](const std::string& token) {
            const auto id = ids_.find(token);
            if (id == ids_.end()) {
                throw Error(ErrorCode::mismatch, escaped(folder_.string()),
                            "expected the token \"" + escaped(token, 60) + "\" in the vocabulary", "found none");
            }
            single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
            special[token] = {{"id", token}, {"ids", json::array({id->second})}, {"tokens", json::array({token})}};
        };
        std::for_each(before.begin(), before.end(), put);
        single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
        std::for_each(behind.begin(), behind.end(), put);
        return {
            {"type", "TemplateProcessing"}, {"single", single}, {"pair", json::array()}, {"special_tokens", special}};
    }

    const fs::path& folder_;
    const Settings& settings_;
    Kind kind_;
    Side side_;
    Settings::Named named_;
    fs::path path_;  ///< of the model
    SentencePieceModel model_;
    std::unordered_map<std::string, json> ids_;  ///< of pieces and added tokens
};

}  // namespace

bool has_sentencepiece_files(const fs::path& folder) {
    return !model_file(folder).empty();
}

bool reads_sentencepiece_files(const fs::path& folder) {
    return has_sentencepiece_files(folder) && kind_of(Settings(folder)) != Kind::unknown;
}

bool target_differs(const fs::path& folder) {
    if (model_file(folder).empty()) return false;
    const Settings settings(folder);
    return kind_of(settings) == Kind::marian || settings.has("tgt_lang");
}

json document_of_sentencepiece_files(const fs::path& folder, Side side) {
    const Settings settings(folder);
    const Kind kind = kind_of(settings);
    if (kind == Kind::unknown) {
        throw Error(
            ErrorCode::unsupported, escaped(model_file(folder).string()),
            "expected a tokenizer.json, which transformers makes of it (AutoTokenizer, save_pretrained), or the "
            "files of Marian's tokenizer, M2M100's, mBART's, PEGASUS's or T5's",
            "found a sentencepiece model");
    }
    if (settings.flag("split_special_tokens", false)) {
        throw Error(ErrorCode::unsupported,
                    escaped((folder / "tokenizer_config.json").string()) + ": split_special_tokens", "expected false",
                    "found true");
    }
    return Document(folder, settings, kind, side).make();
}

}  // namespace headscope::tokenizer
