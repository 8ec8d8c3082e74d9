/* The part of the program that its two libraries and its main file share. */
#ifndef SHAPES_H
#define SHAPES_H

#include <memory>
#include <string>
#include <vector>

namespace shapes
{

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

/* Inlined wherever it is called. */
template <class Number> inline Number square(Number x)
{
    return x * x;
}

template <class Number> struct Box : Shape {
    explicit Box(Number side) : side_(side)
    {
    }
    double area() const override
    {
        return static_cast<double>(square(side_));
    }
    Number side_;
};

std::unique_ptr<Shape> make_circle(double radius);               /* libround */
double total(const std::vector<std::unique_ptr<Shape>> &shapes); /* libsums */
std::string describe(const Shape &shape);                        /* libsums */

} // namespace shapes

#endif
