package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func recordWords(*testing.T) string { return numbered(schemas.RecordWords()) }

func recordEvents(*testing.T) string { return numbered(schemas.RecordEventTypes()) }

// numbered lists names with their numbers, in lines of six.
func numbered[T ~string](all []T) string {
	var b strings.Builder
	for i, name := range all {
		fmt.Fprintf(&b, "%d `%s`", i+1, name)
		switch {
		case i == len(all)-1:
		case i%6 == 5:
			b.WriteString(",\n")
		default:
			b.WriteString(", ")
		}
	}
	return b.String()
}
