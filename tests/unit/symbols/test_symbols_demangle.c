/* Mangled names and what people read. The names of C++ are those that `c++filt -p` prints; the rows
 * of Rust are of both manglings, from the documentation of the second one and from programs. */
#include "symbols/demangle.h"

#include <stdlib.h>

#include "tests/unit/lib/testing.h"

struct row {
    const char *mangled;
    const char *readable; /* NULL: not mangled */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED_MEMORY char *got = demangle(rows[i].mangled);
        CHECK_STR(got == NULL ? "(none)" : got,
                  rows[i].readable == NULL ? "(none)" : rows[i].readable, rows[i].mangled);
    }
}

TEST(cpp_has_template_arguments_and_no_parameters)
{
    static const struct row rows[] = {
        {"_Z3addii", "add"},
        {"_ZN2ns5outer5innerEv", "ns::outer::inner"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
        {"_Z3addIiET_RKSt6vectorIS0_SaIS0_EE", "add<int>"},
        {"_ZNSsC1Ev", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"
                      "::basic_string"},
        {"_ZN3FooD0Ev", "Foo::~Foo"},
        {"_ZNK3FoocvbEv", "Foo::operator bool"},
        {"_ZplRK1AS1_", "operator+"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
        {"_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden"},
        {"_ZTV3Foo", "vtable for Foo"},
        {"_Z3foov.cold", "foo"},
        {"_Z3fooi.constprop.0", "foo"},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(rust_has_no_hash)
{
    static const struct row rows[] = {
        /* the old mangling */
        {"_ZN3foo3bar17h05af221e174051e9E", "foo::bar"},
        {"_ZN4core3fmt9Formatter9write_fmt17h0123456789abcdefE", "core::fmt::Formatter::write_fmt"},
        {"_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop"
         "17h0123456789abcdefE",
         "<alloc::vec::Vec<T> as core::ops::Drop>::drop"},
        {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
         "std::rt::lang_start::{{closure}}"},
        /* the new one */
        {"_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"},
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RNvMCs4fqI2P2rA04_13const_genericINtB2_8UnsignedKhb_E1f",
         "<const_generic::Unsigned<11>>::f"},
        {"_RNCNvC4bike7example0", "bike::example::{closure#0}"},
        {"_RNvYINtC3foo3BarhENtB5_5Trait3baz", "<foo::Bar<u8> as foo::Trait>::baz"},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

TEST(other_names_stay)
{
    static const struct row rows[] = {
        {"main", NULL}, {"__libc_start_main", NULL}, {"_start", NULL}, {"_Z", NULL}, {"_R", NULL},
        {"", NULL},     {"runtime.mallocgc", NULL},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* The name of a template whose argument grows twofold 33 times. */
TEST(a_name_that_grows_without_end_is_cut)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[1024];
    size_t n = (size_t)snprintf(name, sizeof(name), "_Z1fI1aIiiE1bIS1_S1_E");
    for (int i = 3; i < 36; i++) {
        n += (size_t)snprintf(name + n, sizeof(name) - n, "S2_IS%c_S%c_E", digits[i], digits[i]);
    }
    (void)snprintf(name + n, sizeof(name) - n, "EvT_");
    SCOPED_MEMORY char *got = demangle(name);
    assert_non_null(got);
    CHECK_INT(strlen(got), DEMANGLED_MAX, "");
    CHECK_INT(strncmp(got, "f<a<int, int>, b<a<int, int>, a<int, int> >, ", 45), 0, got);
}
