package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/schemas"
)

// version is set by the linker; see the Makefile.
var version = ""

// VersionName is the linker's version, else that of the module, else "dev".
func VersionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" &&
		info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// revision is the commit that the binary was built from; empty if it is not known.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func versionText() string {
	return fmt.Sprintf("drover %s (commit %s, protocol %d, %s %s/%s)", VersionName(),
		cmp.Or(revision(), "unknown"), schemas.Version, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// VersionCommand prints the version.
func VersionCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  ArgNames(),
		RunE: func(*cobra.Command, []string) error {
			if !a.JSON {
				return a.Say("%s", versionText())
			}
			return a.Document(struct {
				Version  string `json:"version"`
				Commit   string `json:"commit,omitempty"`
				Protocol int    `json:"protocol"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{VersionName(), revision(), schemas.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
		},
	}
}
