// What the programs of this directory in C++ do: they count words, and print the most frequent ones as JSON.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using Count = std::pair<std::string, int>;

static std::string make_text(std::mt19937 &random, int words)
{
    std::string text;
    std::geometric_distribution<int> word(0.002);
    for (int i = 0; i < words; i++) {
        text += "word" + std::to_string(word(random)) + (i % 9 == 8 ? ".\n" : " ");
    }
    return text;
}

static std::map<std::string, int> count_words(const std::string &text)
{
    std::map<std::string, int> counts;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        counts[word]++;
    }
    return counts;
}

static std::vector<Count> sort_counts(const std::map<std::string, int> &counts)
{
    std::vector<Count> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(), [](const Count &a, const Count &b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return sorted;
}

static std::string to_json(const std::vector<Count> &counts)
{
    std::ostringstream out;
    for (const Count &c : counts) {
        out << "{\"word\": \"" << c.first << "\", \"count\": " << c.second << "}\n";
    }
    return out.str();
}
