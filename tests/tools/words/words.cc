// Counts words and prints the most frequent ones as JSON, again and again: a program for the flame graph of docs/recipes.md.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "count.hh"

int main(int argc, char **argv)
{
    std::mt19937 random(1);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 5);
    size_t bytes = 0;
    while (std::chrono::steady_clock::now() < end) {
        bytes += to_json(sort_counts(count_words(make_text(random, 20000)))).size();
    }
    std::printf("%zu bytes\n", bytes);
}
