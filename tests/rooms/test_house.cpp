// SPDX-License-Identifier: GPL-3.0-or-later
// Sizes of files and folders, and words of translated-sounding prose. tests/rooms/allowances.txt lists the exceptions;
// it may only shrink.
#include <array>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

constexpr int kMostLines = 450;  ///< of a file of the product or of its tests
constexpr int kMostFiles = 45;   ///< of a product folder
/// Folders that are lists of like files.
const std::set<std::string> kLists{"core/model/families", "core/figures/recipes"};

/// Words and phrases, joined by '_'. Letter case does not count.
const std::set<std::string, std::less<>> kWords{
    "told",       "tell",        "tells",       "telling",       "kin",         "anew",         "dear",
    "dearest",    "whoever",     "nobody",      "so_many",       "nowhere",     "gone_on_with", "goes_on_with",
    "go_on_with", "young_while", "by_the_book", "as_it_were",    "in_its_turn", "at_a_user",    "is_owed",
    "wish",       "wishes",      "wished",      "wants_to_know", "knows_of",    "hear",         "hears",
    "heard_of",   "is_said",     "says_so"};
/// First words of a comment that circles its subject.
constexpr std::array<std::string_view, 7> kOpenings{"What", "Who", "Whose", "Where", "Whether", "That which", "Of"};

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string lowered(std::string_view text) {
    std::string made(text);
    for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return made;
}

/// True if the text has a word or phrase of kWords.
bool has_word(const std::string& any_case) {
    const std::string text = lowered(any_case);
    std::vector<std::string> last;  // up to three words, separated by single spaces
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_word(text[end])) ++end;
        if (end == at) {
            if (text[at] != ' ' || (at > 0 && text[at - 1] == ' ')) last.clear();
            ++at;
            continue;
        }
        last.push_back(text.substr(at, end - at));
        if (last.size() > 3) last.erase(last.begin());
        std::string phrase;
        for (auto word_of = last.rbegin(); word_of != last.rend(); ++word_of) {
            phrase = phrase.empty() ? *word_of : *word_of + "_" + phrase;
            if (kWords.count(phrase) != 0) return true;
        }
        at = end;
    }
    return false;
}

/// True if a comment opens with one of kOpenings.
bool opens_badly(const std::string& comment) {
    for (const std::string_view opening : kOpenings) {
        if (!comment.starts_with(opening)) continue;
        const std::string rest = comment.substr(opening.size());
        if (!rest.empty() && is_word(rest[0])) continue;
        for (const std::string_view good : {" if", " is the", " does the"})
            if (rest.starts_with(good) && (rest.size() == good.size() || !is_word(rest[good.size()]))) return false;
        return true;
    }
    return false;
}

/// The strings of a line of code that have a space, and its comment behind `mark`.
struct Pieces {
    std::vector<std::string> strings;
    std::string comment;
};

Pieces pieces_of(std::string line, std::string_view mark) {
    Pieces pieces;
    if (const auto raw = line.find("R\""); raw != std::string::npos && line.find('(', raw) != std::string::npos)
        line.resize(raw);  // the begin of a raw string
    for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '"') {
            std::size_t end = at + 1;
            while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
            if (end >= line.size()) continue;
            std::string text = line.substr(at + 1, end - at - 1);
            if (text.find(' ') != std::string::npos) pieces.strings.push_back(std::move(text));
            at = end;
        } else if (line.compare(at, mark.size(), mark) == 0) {
            const auto begin = line.find_first_not_of("/#< !", at);
            if (begin != std::string::npos) pieces.comment = line.substr(begin);
            break;
        }
    }
    return pieces;
}

/// Lines with a word of kWords, or where a comment opens badly.
std::vector<int> lines_with_words(const fs::path& path) {
    std::vector<int> found;
    const bool prose = path.extension() == ".md";
    const std::string ending = path.extension().string();
    const std::string mark = ending == ".py" || ending == ".sh" || ending == ".cmake" || ending == ".txt" ? "#" : "//";
    bool fenced = false, in_comment = false;
    std::ifstream file(path);
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        const auto first = line.find_first_not_of(' ');
        if (first == std::string::npos) {
            in_comment = false;
            continue;
        }
        if (prose) {
            if (line.compare(first, 3, "```") == 0) fenced = !fenced;
            if (!fenced && first < 4 && has_word(line)) found.push_back(number);
            continue;
        }
        const Pieces pieces = pieces_of(line, mark);
        bool hit = has_word(pieces.comment) || (!in_comment && opens_badly(pieces.comment));
        for (const std::string& text : pieces.strings) hit = hit || has_word(text);
        if (hit && line.compare(first, 8, "#include") != 0) found.push_back(number);
        in_comment = line.compare(first, mark.size(), mark) == 0;
    }
    return found;
}

/// "words", "lines" or "files", then a folder or file: the number allowed, or found.
using Counts = std::map<std::string, int>;

Counts allowances() {
    Counts allowed;
    std::ifstream file(fs::path(HEADSCOPE_SOURCE_DIR) / "tests/rooms/allowances.txt");
    REQUIRE(file);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        const auto space = line.rfind(' ');
        allowed[line.substr(0, space)] = std::stoi(line.substr(space + 1));
    }
    return allowed;
}

/// Files of the project whose text or size counts, below the source folder.
std::vector<fs::path> files_of(const fs::path& source) {
    static const std::set<std::string> endings{".cpp", ".h", ".cu", ".cuh", ".hip", ".py", ".md", ".sh", ".cmake"};
    std::vector<fs::path> files;
    const auto take = [&](const fs::path& path) {
        if (endings.count(path.extension().string()) != 0 || path.filename() == "CMakeLists.txt")
            files.push_back(fs::relative(path, source));
    };
    for (const auto& entry : fs::directory_iterator(source))
        if (entry.is_regular_file()) take(entry.path());
    for (const char* top : {"app", "cmake", "core", "docs", "installer", "kernels", "tests", "widgets"})
        for (const auto& entry : fs::recursive_directory_iterator(source / top))
            if (entry.is_regular_file()) take(entry.path());
    return files;
}

/// "core/model" of "core/model/heads/loss.h"; "." of a file in the source folder.
std::string room_of(const fs::path& file) {
    auto part = file.begin();
    if (std::next(part) == file.end()) return ".";
    const fs::path top = *part++;
    return std::next(part) == file.end() ? top.string() : (top / *part).string();
}

}  // namespace

TEST_CASE("Files, folders and words keep to their allowances, which only shrink", "[rooms]") {
    const fs::path source(HEADSCOPE_SOURCE_DIR);
    Counts found, files;
    std::map<std::string, std::string> places;
    for (const fs::path& file : files_of(source)) {
        const std::string room = "words " + room_of(file);
        for (const int line : lines_with_words(source / file)) {
            ++found[room];
            places[room] += "\n  " + file.string() + ":" + std::to_string(line);
        }
        const std::string top = file.begin()->string(), ending = file.extension().string();
        const bool product = top == "app" || top == "core" || top == "kernels" || top == "widgets";
        if ((!product && top != "tests") || (ending != ".cpp" && ending != ".h" && ending != ".cu" && ending != ".py"))
            continue;
        std::ifstream text(source / file);
        int lines = 0;
        for (std::string line; std::getline(text, line);) ++lines;
        if (lines > kMostLines) found["lines " + file.string()] = lines;
        if (!product || ending == ".py") continue;
        if (const std::string folder = file.parent_path().string(); kLists.count(folder) == 0) ++files[folder];
    }
    for (const auto& [folder, number] : files)
        if (number > kMostFiles) found["files " + folder] = number;

    const Counts allowed = allowances();
    for (const auto& [what, number] : found) {
        INFO("found " << what << " " << number << places[what]);
        const auto most = allowed.find(what);
        CHECK(number <= (most == allowed.end() ? 0 : most->second));
    }
    for (const auto& [what, most] : allowed) {
        const auto number = found.find(what);
        INFO("allowances.txt: lower \"" << what << " " << most << '"');
        CHECK((number == found.end() ? 0 : number->second) >= most);
    }
}

TEST_CASE("Words and openings are found in comments, strings and sentences", "[rooms]") {
    CHECK(has_word("Whoever"));
    CHECK(has_word("read so" + std::string(" many tokens")));
    CHECK_FALSE(has_word("told_ and kinds, wishful"));
    CHECK(opens_badly("What a view shows"));
    CHECK(opens_badly("What is there"));
    CHECK_FALSE(opens_badly("What is the matter"));
    CHECK_FALSE(opens_badly("Offsets of rows"));
    const Pieces pieces = pieces_of(R"(call("a b", "c");  ///< the rest)", "//");
    CHECK(pieces.strings == std::vector<std::string>{"a b"});
    CHECK(pieces.comment == "the rest");
}
