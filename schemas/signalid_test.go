package schemas_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// The request id of a signal is as it was after a header of NATS, and short enough to be remembered.
func TestValidateSignalRequestID(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, "a b": true, "a\tb": true, strings.Repeat("x", schemas.MaxIDLen): true,
		" a": false, "a ": false, "\ta": false, "a\t": false, "a\rb": false, "a\nb": false, strings.Repeat("x", schemas.MaxIDLen+1): false,
	} {
		if err := schemas.ValidateSignalRequestID("requestId", id); (err == nil) != want {
			t.Errorf("%.40q: got %v; want that it is taken: %t", id, err, want)
		} else if err != nil && err.Field != "requestId" {
			t.Errorf("%.40q: the error is of field %q", id, err.Field)
		}
	}
}
