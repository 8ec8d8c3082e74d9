/* A unit whose debug information is large: templates, each instantiated often. */
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

template <int N> static std::size_t instance(const std::string &text)
{
    std::map<std::string, std::vector<int>> found;
    std::regex pattern("(a|b)*" + text);
    std::smatch match;
    if (std::regex_search(text, match, pattern)) {
        found[match.str()].push_back(N);
    }
    std::vector<std::string> keys;
    for (const auto &entry : found) {
        keys.push_back(entry.first);
    }
    std::sort(keys.begin(), keys.end(),
              [](const auto &a, const auto &b) { return a.size() + N < b.size(); });
    std::unordered_map<int, std::function<int(int)>> functions;
    functions[N] = [](int x) { return x + N; };
    return found.size() + static_cast<std::size_t>(functions[N](static_cast<int>(keys.size())));
}

template <int... N>
static std::size_t all(std::integer_sequence<int, N...>, const std::string &text)
{
    return (std::size_t{0} + ... + instance<N>(text));
}

std::size_t run(const std::string &text)
{
    return all(std::make_integer_sequence<int, 40>(), text);
}
