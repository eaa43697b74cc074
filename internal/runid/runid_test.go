package runid_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/internal/runid"
)

// Earlier versions have made these: a repeat that comes to a later one must find them.
func TestIDsStayAsTheyAre(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 7e8, time.UTC).UnixMilli()
	for got, want := range map[string]string{
		runid.OfRequest("", "q1"):      "3M8CX36F0BE1CR52XA1CP7R6GN",
		runid.OfRequest("order", "q1"): "3YG9CCGMBTM16M95WE7WWBYTGG",
		runid.Of(at, "parent.7"):       "01M8997E5WP7J0VWH2ADHNDCXP",
		runid.Of(-1, "parent.7"):       "1BWHVQVJ2PP7J0VWH2ADHNDCXP",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestIDsTellTheirTime(t *testing.T) {
	at := time.Date(2026, 11, 25, 12, 0, 0, 7e8, time.UTC)
	id, err := ulid.ParseStrict(runid.Of(at.UnixMilli(), "seed"))
	if err != nil || !ulid.Time(id.Time()).Equal(at) {
		t.Fatalf("got %v, %v, want %v", ulid.Time(id.Time()), err, at)
	}
}

// A workflow id that ends as a request id begins is another question.
func TestQuestionsAreToldApart(t *testing.T) {
	if runid.OfRequest("a", ".b") == runid.OfRequest("a.", "b") || runid.OfRequest("", "a.b") == runid.OfRequest("a", "b") {
		t.Fatal("two questions have one id")
	}
}
