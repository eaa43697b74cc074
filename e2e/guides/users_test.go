package guides_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/conf"

	"github.com/droverhq/drover/ops/permissions"
)

// A server of NATS reads the user as it was named, whatever a word of its configuration may else be taken for.
func TestConfigurationOfAnyUser(t *testing.T) {
	for _, user := range []string{"pci", "42", "7k", "on", "TRUE", "$HOME", "a,b", "a;b", "a#b", "a/b", "-a", "a=b", "[a]"} {
		tpl, err := permissions.For(permissions.Options{Role: permissions.Client, User: user, Inbox: "_INBOX.c"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := tpl.Account("p$1", "DROVER")
		if err != nil {
			t.Fatal(err)
		}
		first, second, _ := strings.Cut(text, "# An account of its own.")
		got, err := conf.Parse("DROVER {\n" + first + "}\n" + second)
		if err != nil {
			t.Errorf("%s: %v\n%s", user, err, text)
			continue
		}
		account, ok := got[strings.ToUpper(user)].(map[string]any)
		if !ok {
			t.Errorf("%s: got %v, want an account of that name", user, got)
			continue
		}
		have := account["users"].([]any)[0].(map[string]any)
		if have["user"] != user || have["password"] != "p$1" {
			t.Errorf("got user %v with password %v, want %s", have["user"], have["password"], user)
		}
		export := got["DROVER"].(map[string]any)["exports"].([]any)[0].(map[string]any)
		if diff := cmp.Diff([]any{strings.ToUpper(user)}, export["accounts"]); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", user, diff)
		}
	}
}
