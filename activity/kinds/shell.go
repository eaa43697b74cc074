package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/internal/slack"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultOutput = 100_000
	maxOutput     = 1 << 20
	// shellGrace is how long output may still come when the command has ended or was killed: what
	// it left over may hold the pipes.
	shellGrace  = 2 * time.Second
	shellPath   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	maxCommand  = 100_000 // bytes; the kernel takes little more in one argument
	shellEnvKey = "DROVER_IDEMPOTENCY_KEY"
)

// ShellInput is the input of the kind shell.
type ShellInput struct {
	// Command is handed to /bin/sh -c.
	Command string `json:"command"`
	// Env are variables of the command, beside those of [ShellOptions] and PATH. Values that are no
	// texts are written as JSON.
	Env map[string]any `json:"env,omitempty"`
	// OutputMaxSize is how many bytes of stdout, and of stderr, are kept: the last ones. Defaults
	// to 100,000; at most 1 MiB.
	OutputMaxSize int `json:"output_max_size,omitempty"`
	// Timeout bounds the command. Defaults to what is left to the activity.
	Timeout schemas.Duration `json:"timeout,omitempty"`
}

// ShellOutput is the result of the kind shell, whatever the exit code, and the details of a failure
// by timeout.
type ShellOutput struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// ExitCode is 128 and the signal for a command that a signal ended.
	ExitCode int `json:"exit_code"`
}

// ShellOptions of [Shell]. The zero value of every field is its default.
type ShellOptions struct {
	// Dir is the working directory. Defaults to an empty one for each command, which is removed
	// after it.
	Dir string
	// Env are variables, as NAME=VALUE, of every command. Nothing else is inherited from the
	// worker. Defaults to none but PATH.
	Env []string
}

// Shell returns the function of the kind shell: a command of /bin/sh, with the rights of the
// worker. Register it only where whoever may start workflows may do that. Nil options mean all
// defaults.
//
// When the activity ends, by a timeout or because it is no longer wanted, everything that the
// command has started in its process group is killed. The same happens to what is left in it when
// the command has ended by itself.
func Shell(o *ShellOptions) func(ctx context.Context, in ShellInput) (ShellOutput, error) {
	if o == nil {
		o = &ShellOptions{}
	}
	s := sheller{*o}
	return s.run
}

type sheller struct{ ShellOptions }

func (s sheller) run(ctx context.Context, in ShellInput) (out ShellOutput, err error) {
	env, err := s.env(ctx, in)
	if err != nil {
		return out, err
	}
	dir := s.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "drover-shell-"); err != nil {
			return out, fmt.Errorf("shell: a working directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	whole := ctx
	if in.Timeout.Limited() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, in.Timeout.Std())
		defer cancel()
	}
	most := cmp.Or(in.OutputMaxSize, defaultOutput)
	stdout, stderr := &tail{most: most}, &tail{most: most}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", in.Command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, env, stdout, stderr, shellGrace
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	if err = slack.Begin(cmd.Start); err == nil {
		err = cmd.Wait()
	}
	if cmd.Process != nil {
		_ = killGroup(cmd) // what it has left over, if anything
	}
	out = ShellOutput{Stdout: stdout.text(), Stderr: stderr.text()}
	if cmd.ProcessState != nil {
		out.ExitCode = exitCode(cmd.ProcessState)
	}
	_, signaled := errors.AsType[*exec.ExitError](err)
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Exited():
		// by itself, even if time was up while something that it has left over kept the pipes
		return out, nil
	case whole.Err() != nil:
		return out, context.Cause(whole)
	case ctx.Err() != nil:
		return out, activity.Fail(ReasonTimeout, out)
	case signaled:
		return out, nil
	}
	return out, fmt.Errorf("shell: %w", err)
}

// env is what the command sees, and judges the input.
func (s sheller) env(ctx context.Context, in ShellInput) ([]string, error) {
	switch {
	case in.Command == "" || strings.ContainsRune(in.Command, 0):
		return nil, badInput("command is empty or holds a NUL: say what is to run")
	case len(in.Command) > maxCommand:
		return nil, badInput("command has %d bytes, more than %d: put it into a file",
			len(in.Command), maxCommand)
	case in.OutputMaxSize < 0 || in.OutputMaxSize > maxOutput:
		return nil, badInput("output_max_size is %d: use 1 to %d, or leave it out for %d",
			in.OutputMaxSize, maxOutput, defaultOutput)
	}
	env := append([]string{"PATH=" + shellPath}, s.Env...)
	if key := activity.Info(ctx).IdempotencyKey; key != "" {
		env = append(env, shellEnvKey+"="+key)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		v := in.Env[name]
		text, ok := v.(string)
		if !ok {
			p, err := schemas.JSONPayload(v)
			if err != nil {
				return nil, badInput("env: %s: %v", name, err)
			}
			text = string(p)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(text, 0) {
			return nil, badInput("env: %q cannot be set: want a name without =, and no NUL", name)
		}
		env = append(env, name+"="+text)
	}
	return env, nil
}

// tail keeps the last bytes that are written.
type tail struct {
	most int
	b    []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.most {
		p = p[len(p)-t.most:]
	}
	t.b = append(t.b, p...)
	if len(t.b) > 2*t.most {
		t.b = append(t.b[:0], t.b[len(t.b)-t.most:]...)
	}
	return n, nil
}

func (t *tail) text() string {
	return strings.ToValidUTF8(string(t.b[max(0, len(t.b)-t.most):]), "\uFFFD")
}
