// Package check has the checks of tests.
package check

import "testing"

// Must ends the test if there is an error: it is for steps that no test is about.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Expect fails the test if a condition does not hold; the message says what is there instead.
func Expect(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Require is Expect for a condition without which the rest of the test makes no sense: it ends the test.
func Require(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Equal fails the test if a value is another one than expected.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, expected %v", what, got, want)
	}
}
