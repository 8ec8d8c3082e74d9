/* A program whose functions are inlined into each other, several deep. */
#include "shapes.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace shapes;

static inline int clamp_to(int x, int most)
{
    return std::min(std::max(x, 0), most);
}

static inline int mix(int x)
{
    int mixed = clamp_to(x * 31, 1 << 20);
    for (int i = 0; i < 3; i++) {
        mixed ^= clamp_to(mixed >> i, 255);
    }
    return mixed;
}

__attribute__((noinline)) static std::map<std::string, int> count(const std::vector<int> &values)
{
    std::map<std::string, int> counts;
    for (int v : values) {
        counts[v % 2 == 0 ? "even" : "odd"] += mix(v);
    }
    return counts;
}

template <class Shapes> __attribute__((noinline)) static void fill(Shapes &shapes, int n)
{
    auto add = [&](auto make) {
        for (int i = 0; i < n; i++) {
            shapes.push_back(make(i));
        }
    };
    add([](int i) { return std::make_unique<Box<int>>(i); });
    add([](int i) { return std::make_unique<Box<double>>(i / 2.0); });
    add([](int i) { return make_circle(i); });
}

extern "C" int plain_c(int x)
{
    return mix(x) + 1;
}

int main(int argc, char **argv)
{
    std::vector<std::unique_ptr<Shape>> shapes;
    std::vector<int> values;
    (void)argv;
    fill(shapes, argc * 3);
    for (const auto &s : shapes) {
        values.push_back(mix(static_cast<int>(s->area())));
    }
    std::sort(values.begin(), values.end(), [](int a, int b) { return mix(a) < mix(b); });
    for (const auto &pair : count(values)) {
        std::printf("%s %d %d\n", pair.first.c_str(), pair.second, plain_c(pair.second));
    }
    std::printf("%f %s\n", total(shapes), describe(*shapes.front()).c_str());
    return 0;
}
