#include "shapes.h"

#include <stdexcept>

namespace shapes {
namespace {

class Circle : public Shape
{
  public:
    explicit Circle(double radius) : radius_(radius)
    {
        if (radius < 0) {
            throw std::invalid_argument("a circle with radius " + std::to_string(radius));
        }
    }
    double area() const override
    {
        return 3.14159 * square(radius_);
    }

  private:
    double radius_;
};

} // namespace

std::unique_ptr<Shape> make_circle(double radius)
{
    return std::make_unique<Circle>(radius);
}

} // namespace shapes
