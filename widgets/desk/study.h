// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One analysis as views see it: immutable values, read on another thread when somebody asks for them.

#include <QObject>
#include <QString>
#include <QStringList>
#include <any>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/io/file_identity.h"
#include "core/base/process/worker.h"
#include "core/figures/figure_options.h"
#include "core/figures/word_units.h"
#include "core/maps/mean_map.h"
#include "core/maps/value_map.h"
#include "core/store/analysis/analysis_file.h"
#include "core/workspace/head_table.h"
#include "widgets/desk/value_budget.h"
#include "widgets/mailbox.h"

namespace headscope::widgets {

/// Reply to a view: a value (perhaps an older one while a newer is read), a failure, or neither while it is being
/// read: request it again at `Study::arrived`.
template <class T>
struct Reply {
    std::shared_ptr<const T> value;
    QString failure;
    bool pending = false;

    const T* operator->() const { return value.get(); }
    const T& operator*() const { return *value; }
    explicit operator bool() const { return value != nullptr; }
};

/// Weights and scores of one row (a query's) or one column (a key's) of a map; NaN where a pair is not allowed.
struct Profile {
    std::vector<float> weights, scores;
};

/// The words of a text, with their labels.
struct StudyWords {
    figures::WordUnits units;
    std::vector<QString> labels;

    std::int64_t size() const { return std::ssize(labels); }
    std::int64_t word_of(std::int64_t piece) const;
    std::int64_t first_piece(std::int64_t word) const;
};

/// About what a value takes in memory; overload it for what is large.
template <class T>
std::int64_t bytes_of(const T&) {
    return 4096;
}
inline std::int64_t bytes_of(const store::Values& values) {
    return static_cast<std::int64_t>(values.data.size() * sizeof(double));
}
inline std::int64_t bytes_of(const store::AnalysisFile::Experts& experts) {
    return bytes_of(experts.index) + bytes_of(experts.weight);
}
inline std::int64_t bytes_of(const maps::HeadMap& map) {
    return map.bytes();
}
inline std::int64_t bytes_of(const maps::ValueMap& map) {
    return map.bytes();
}
inline std::int64_t bytes_of(const maps::WordMap& map) {
    return map.bytes();
}
inline std::int64_t bytes_of(const StudyWords& words) {
    return words.size() * 200 + std::ssize(words.units.tokens.text);
}
inline std::int64_t bytes_of(const maps::MeanMap& map) {
    return map.bytes();
}
inline std::int64_t bytes_of(const std::vector<QString>& labels) {
    return static_cast<std::int64_t>(labels.size() * 64);
}
std::int64_t bytes_of(const figures::FigureData& figure);
inline std::int64_t bytes_of(const Profile& profile) {
    return static_cast<std::int64_t>(profile.weights.size() * 8);
}

/// An open analysis, complete or still being written. Window's thread; asking never waits. Values stay in a cache for
/// which all open analyses have one budget.
class Study : public QObject {
    Q_OBJECT
public:
    using Header = std::shared_ptr<const store::AnalysisHeader>;

    /// A file as the reader's thread opened it. Throws Error.
    struct Opened {
        std::shared_ptr<store::AnalysisFile> file;  ///< touched on that thread only
        Header header;
        bool complete = false;
        std::set<std::pair<std::int64_t, std::int64_t>> done;  ///< (sequence, site) of a partial file
        std::optional<FileIdentity> identity;
        QStringList problems;  ///< of a complete file
    };
    static Opened open(const std::filesystem::path& path);

    /// `reader` owns HDF5; it and the budget outlive this.
    Study(int id, Worker* reader, ValueBudget* budget, Opened opened, QObject* parent = nullptr);
    ~Study() override;

    int id() const { return id_; }
    const std::filesystem::path& path() const { return path_; }
    /// True: to open what is there would show this analysis again.
    bool is(const FileIdentity& file) const;
    /// The file was published under another name.
    void set_path(const std::filesystem::path& path);
    /// For lists and figures: the name that the user gave, else the file's.
    QString name() const { return given_name_.isEmpty() ? file_name() : given_name_; }
    QString file_name() const;                                 ///< without endings
    const QString& given_name() const { return given_name_; }  ///< empty: none
    /// Desk::rename_study() calls this. At most kMostName characters of one line are kept; empty: the file's name
    /// again.
    void set_name(const QString& name);
    static constexpr int kMostName = 80;
    QString model_name() const;
    const store::AnalysisHeader& header() const { return *header_; }
    const Header& shared_header() const { return header_; }
    bool complete() const { return complete_; }
    /// A sentence for each NaN or infinite value of the run; of a run in this process when it is done.
    const QStringList& problems() const { return problems_; }
    const std::vector<Site>& sites() const { return header_->sites; }
    /// As core/base/site_name.h has it: "3", "1 softmax"; "layer 1, softmax branch"; "Layer 1, softmax branch".
    QString site_name(std::int64_t site) const;
    QString site_title(std::int64_t site) const;
    QString site_heading(std::int64_t site) const;
    /// Mixer of the site's layer, as configurations name it; empty if the file does not have it.
    std::string mixer(std::int64_t site) const;
    std::int64_t sequences() const { return static_cast<std::int64_t>(header_->sequences.size()); }
    const store::SequenceTokens& tokens(const std::string& stream, std::int64_t sequence) const;
    const store::SequenceTokens& query_tokens(std::int64_t sequence, std::int64_t site) const;
    const store::SequenceTokens& key_tokens(std::int64_t sequence, std::int64_t site) const;

    /// How many queries, or keys, a site has in a sequence, or (empty) in the longest.
    std::int64_t query_count(std::optional<std::int64_t> sequence, std::int64_t site) const;
    std::int64_t key_count(std::optional<std::int64_t> sequence, std::int64_t site) const;

    Reply<workspace::HeadTable> heads(std::optional<std::int64_t> sequence);
    /// which: mean, maximum: [H, T, T].
    Reply<store::Values> thumbnails(const std::string& which, std::int64_t sequence, std::int64_t site);
    Reply<store::Values> column_mass(std::int64_t sequence, std::int64_t site);  ///< [H, L]
    Reply<store::Values> loss(std::int64_t sequence);                            ///< [L]
    /// Null value without failure: the file has no experts. A layer that runs has them after its site is done.
    Reply<store::AnalysisFile::Experts> experts(std::int64_t sequence, std::int64_t layer);
    /// Types of NAtS-L's chunks at a linear branch: [H, chunks]. Null value without failure: the file has none.
    Reply<store::Values> token_types(std::int64_t sequence, std::int64_t site);
    /// Null value without failure: the file has no maps of this site.
    Reply<maps::HeadMap> map(std::int64_t sequence, std::int64_t site, std::int64_t head);
    /// The same in the mean over the sequences that are done.
    Reply<maps::MeanMap> mean_map(std::int64_t site, std::int64_t head);
    /// The map, or of a recurrent site the implicit matrix.
    Reply<maps::PairMap> weights_map(std::int64_t sequence, std::int64_t site, std::int64_t head);
    /// Norms, rollout or an implicit matrix; `head`: not of all heads together. A failure says what the file lacks.
    Reply<maps::ValueMap> computed_map(std::int64_t sequence, std::int64_t site, std::int64_t head,
                                       figures::MapValues values);
    /// The same with words in place of pieces.
    Reply<maps::WordMap> word_map(std::int64_t sequence, std::int64_t site, std::int64_t head);
    Reply<StudyWords> words(const std::string& stream, std::int64_t sequence);
    Reply<Profile> row(std::int64_t sequence, std::int64_t site, std::int64_t head, std::int64_t query);
    Reply<Profile> column(std::int64_t sequence, std::int64_t site, std::int64_t head, std::int64_t key);
    /// Labels of all tokens of a stream, as figures::visible_token() makes them.
    Reply<std::vector<QString>> labels(const std::string& stream, std::int64_t sequence);
    /// A recipe's figure of this analysis and `others` (open ones), made on the reader's thread; without its table.
    Reply<figures::FigureData> figure(const std::string& recipe, const figures::FigureOptions& options,
                                      const std::vector<Study*>& others = {});
    /// Anything else: `read` runs on the reader's thread, once for each `key`. `site` and `sequence`: what it is about,
    /// -1: everything; it is read again when that changes. The value's size is what bytes_of() says. `read` may throw
    /// Stopped when what it was asked for is no longer wanted: then it was never asked for.
    template <class T>
    Reply<T> ask(const std::string& key, std::int64_t sequence, std::int64_t site,
                 std::function<std::shared_ptr<const T>(const store::AnalysisFile&)> read) {
        const Entry& entry = find(key, sequence, site, [read = std::move(read)](const store::AnalysisFile& file) {
            std::shared_ptr<const T> value = read(file);
            const std::int64_t bytes = value ? bytes_of(*value) : 0;
            return Loaded{std::any(std::move(value)), bytes};
        });
        Reply<T> reply;
        if (const auto* value = std::any_cast<std::shared_ptr<const T>>(&entry.value)) reply.value = *value;
        reply.failure = entry.failure;
        reply.pending = entry.pending;
        return reply;
    }

    bool has_maps() const { return header_->record.maps; }
    /// True if this site's map was recorded: of a recurrent site, its implicit matrix.
    bool has_maps(std::int64_t site) const {
        return sites().at(static_cast<std::size_t>(site)).has_implicit ? header_->record.implicit : has_maps();
    }
    bool site_done(std::int64_t sequence, std::int64_t site) const;
    std::int64_t done_sites() const { return static_cast<std::int64_t>(done_.size()); }

    /// For the owner of the running analysis; window's thread.
    void tell_site_done(std::int64_t sequence, std::int64_t site);
    void tell_loss_done(std::int64_t sequence);
    void tell_complete(const std::filesystem::path& path);
    /// The run ended early: what is there stays.
    void tell_stopped();
    bool running() const { return running_; }
    void set_running();

    /// For the budget: forgets a value, unless it is being read.
    void drop_value(const std::string& key);

    /// Spells a token of the vocabulary; empty without a tokenizer. Returns at once.
    std::function<QString(std::int32_t id)> spell;

Q_SIGNALS:
    /// Values came, or what is there changed: ask again. At most once a turn of the event loop.
    void arrived();
    void renamed();  ///< or its state changed: lists show it again
    void problems_found();

private:
    struct Loaded {
        std::any value;
        std::int64_t bytes = 0;
    };
    using Read = std::function<Loaded(const store::AnalysisFile&)>;
    struct Entry {
        std::any value;
        QString failure;
        bool known = false, pending = false, stale = false;
        std::int64_t sequence = -1, site = -1;
        /// Round of the last request: the reader skips values that were not requested lately.
        std::shared_ptr<std::atomic<int>> wanted = std::make_shared<std::atomic<int>>(0);
        ValueBudget::Place place;
    };
    const Entry& find(const std::string& key, std::int64_t sequence, std::int64_t site, Read read);
    void take(const std::string& key, Loaded loaded, const QString& failure);
    void drop(const std::string& key);
    void spoil(std::int64_t sequence, std::int64_t site);
    void announce();
    void read_problems();
    std::int64_t token_count(const std::string& stream, std::optional<std::int64_t> sequence) const;
    void erase(std::map<std::string, Entry>::const_iterator place);

    int id_;
    Worker* reader_;
    ValueBudget* budget_;
    std::shared_ptr<store::AnalysisFile> file_;
    Header header_;
    std::filesystem::path path_;
    QString given_name_;
    bool complete_, running_ = false, announced_ = false;
    std::optional<FileIdentity> identity_;
    bool written_here_ = false;  ///< by this process since it was opened: its time is another one now
    std::set<std::pair<std::int64_t, std::int64_t>> done_;
    QStringList problems_;
    std::map<std::string, Entry> cache_;
    Mailbox mailbox_{this};
};

/// Names for figures and for what is compared: those that were given, else the models', as figures::analysis_labels()
/// has them.
std::vector<QString> study_labels(const std::vector<const Study*>& studies);
/// The given names for FigureOptions::names; empty where no study has one.
std::vector<std::string> given_names(const std::vector<const Study*>& studies);

}  // namespace headscope::widgets
