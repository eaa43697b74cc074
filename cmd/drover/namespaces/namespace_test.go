package namespaces

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestIncompleteNamespace(t *testing.T) {
	text := string(namespaceText(&schemas.NamespaceInfo{Name: "shop", Status: schemas.NamespaceIncomplete}))
	for _, want := range []string{"incomplete: some of its streams are missing", "drover doctor -n shop", "drover namespace create shop makes them"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q in it", text, want)
		}
	}
}
