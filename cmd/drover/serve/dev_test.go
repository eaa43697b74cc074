package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/server"
)

func TestDevLine(t *testing.T) {
	for _, tt := range []struct{ url, env, context, namespace, want string }{
		{cli.DefaultNATS, "", "", "default", ""},
		{cli.DefaultNATS, "nats://elsewhere:4222", "", "default", " --nats nats://127.0.0.1:4222"},
		{cli.DefaultNATS, "", "prod", "default", " --nats nats://127.0.0.1:4222"},
		{"nats://127.0.0.1:5000", "", "", "shop", " --nats nats://127.0.0.1:5000 --namespace shop"},
	} {
		t.Setenv("NATS_URL", tt.env)
		t.Setenv(cli.ContextEnv, tt.context)
		want := "drover is ready at " + tt.url + ", and forgets everything when it ends; next, in another terminal: drover start hello --wait" + tt.want
		if diff := cmp.Diff(want, devLine(server.Info{URL: tt.url, Namespace: tt.namespace})); diff != "" {
			t.Error(diff)
		}
	}
}
