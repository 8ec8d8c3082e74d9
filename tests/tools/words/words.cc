// Counts words and prints the most frequent ones as JSON, again and again: a program for the flame graph of docs/recipes.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using Count = std::pair<std::string, int>;

static std::string make_text(std::mt19937 &random)
{
    std::string text;
    std::geometric_distribution<int> word(0.002);
    for (int i = 0; i < 20000; i++) {
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

int main(int argc, char **argv)
{
    std::mt19937 random(1);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 5);
    size_t bytes = 0;
    while (std::chrono::steady_clock::now() < end) {
        bytes += to_json(sort_counts(count_words(make_text(random)))).size();
    }
    std::printf("%zu bytes\n", bytes);
}
