#include "shapes.h"

#include <numeric>
#include <sstream>

namespace shapes {

double total(const std::vector<std::unique_ptr<Shape>> &shapes)
{
    return std::accumulate(shapes.begin(), shapes.end(), 0.0,
                           [](double sum, const std::unique_ptr<Shape> &s) {
                               return sum + s->area();
                           });
}

std::string describe(const Shape &shape)
{
    std::ostringstream out;
    out << "a shape of " << shape.area();
    return out.str();
}

} // namespace shapes
