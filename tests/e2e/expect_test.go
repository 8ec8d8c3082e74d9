package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"profpull.test/e2e/fakes/check"
)

// ---- checks -------------------------------------------------------------------------------------

// must, expect, require and equal are those of package check.
func must(t testing.TB, err error) {
	t.Helper()
	check.Must(t, err)
}

func expect(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	check.Expect(t, holds, format, args...)
}

func require(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	check.Require(t, holds, format, args...)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	check.Equal(t, what, got, want)
}

// has fails the test for each part that a text lacks, and lacks for each that it has.
func has(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		expect(t, strings.Contains(text, part), "%s: %q is missing in:\n%s", what, part, text)
	}
}

func lacks(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		expect(t, !strings.Contains(text, part), "%s: %q must not be in:\n%s", what, part, text)
	}
}

// decode reads JSON, which must be in order.
func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	err := json.Unmarshal(text, into)
	require(t, err == nil, "%v in %s", err, text)
}

// hasLabels fails the test for each label of pairs ("job", "pods", ...) that has another value.
func hasLabels(t testing.TB, labels map[string]string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		expect(t, labels[pairs[i]] == pairs[i+1], "%s=%q, expected %q: %v", pairs[i], labels[pairs[i]], pairs[i+1], labels)
	}
}

// atLeast and atMost fail the test if a number is below or above its limit.
func atLeast[T amount](t testing.TB, what string, got, least T) {
	t.Helper()
	if got < least {
		t.Errorf("%s: %v, expected at least %v", what, got, least)
	}
}

func atMost[T amount](t testing.TB, what string, got, most T) {
	t.Helper()
	if got > most {
		t.Errorf("%s: %v, expected at most %v", what, got, most)
	}
}

type amount interface {
	int | int64 | float64 | time.Duration
}

// unless is the answer of a check of wait: nothing if the condition holds, otherwise what is there instead.
func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return orNothing(fmt.Sprintf(format, args...))
}

// until waits until a condition holds. Like the two functions below it returns how long that took.
func until(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	return wait(t, what, func() string { return unless(holds(), "not yet") })
}

// reaches waits until a number is at least this one.
func reaches[T amount](t *testing.T, what string, least T, count func() T) time.Duration {
	t.Helper()
	return wait(t, what, func() string {
		got := count()
		return unless(got >= least, "%v of %v", got, least)
	})
}

// becomes waits until a value is this one.
func becomes[T comparable](t *testing.T, what string, want T, get func() T) time.Duration {
	t.Helper()
	return wait(t, what, func() string {
		got := get()
		return unless(got == want, "%v, expected %v", got, want)
	})
}
