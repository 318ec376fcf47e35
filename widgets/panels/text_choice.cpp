// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/text_choice.h"

#include <QJsonArray>

namespace headscope::widgets {
namespace {

const char* const kKinds[] = {"text", "file", "example"};
const char* const kFirst[] = {"auto", "yes", "no"};

template <class Enum, std::size_t N>
Enum named(const QString& name, const char* const (&names)[N]) {
    for (std::size_t i = 0; i < N; ++i)
        if (name == QLatin1String(names[i])) return static_cast<Enum>(i);
    return Enum{};
}

}  // namespace

QJsonObject to_json(const TextChoice& choice) {
    QJsonArray sources;
    for (const TextSource& source : choice.sources)
        sources.append(QJsonObject{
            {"kind", kKinds[static_cast<int>(source.kind)]}, {"value", source.value}, {"used", source.used}});
    return {{"sources", sources},
            {"pair", choice.pair},
            {"target", choice.target},
            {"first", kFirst[static_cast<int>(choice.first)]},
            {"chat", choice.chat},
            {"repeat_token", choice.repeat_token},
            {"length", static_cast<double>(choice.length)},
            {"windows", choice.windows},
            {"segment", static_cast<double>(choice.segment)},
            {"memory", static_cast<double>(choice.memory)},
            {"beyond_positions", choice.beyond_positions},
            {"maps", choice.maps},
            {"states", choice.states},
            {"logits", choice.logits},
            {"experts", choice.experts},
            {"implicit", choice.implicit},
            {"device", choice.device},
            {"interventions", choice.interventions.toml},
            {"interventions_place", choice.interventions.place}};
}

TextChoice text_choice_from(const QJsonObject& object) {
    TextChoice choice;
    for (const QJsonValue value : object["sources"].toArray()) {
        const QJsonObject source = value.toObject();
        choice.sources.push_back({named<TextSource::Kind>(source["kind"].toString(), kKinds),
                                  source["value"].toString(), source["used"].toBool(true)});
    }
    choice.pair = object["pair"].toString();
    choice.target = object["target"].toString();
    choice.first = named<TextChoice::First>(object["first"].toString(), kFirst);
    choice.chat = object["chat"].toBool();
    choice.repeat_token = object["repeat_token"].toBool();
    choice.length = static_cast<std::int64_t>(std::max(0.0, object["length"].toDouble()));
    choice.windows = object["windows"].toBool();
    choice.segment = static_cast<std::int64_t>(std::max(0.0, object["segment"].toDouble()));
    choice.memory = static_cast<std::int64_t>(std::max(-1.0, object["memory"].toDouble(-1)));
    choice.beyond_positions = object["beyond_positions"].toBool();
    choice.maps = object["maps"].toBool(true);
    choice.states = object["states"].toBool();
    choice.logits = object["logits"].toBool();
    choice.experts = object["experts"].toBool();
    choice.implicit = object["implicit"].toBool();
    choice.device = object["device"].toString(choice.device);
    choice.interventions = {object["interventions"].toString(), object["interventions_place"].toString()};
    return choice;
}

}  // namespace headscope::widgets
