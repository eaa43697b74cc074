package machine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

const statusReason = "http_status_"

// worked takes the answer of an activity.
func (m *machine) worked(x *act, in Input) (result, error) {
	out := in.Value
	if in.Kind == Failed {
		code, isStatus := strings.CutPrefix(in.Failure.Message, statusReason)
		n, err := strconv.ParseInt(code, 10, 64)
		if x.st.Type != "http" || !isStatus || err != nil {
			return result{}, in.Failure
		}
		if out = in.Failure.Fields.V; asMap(out)["status"] == nil {
			out = map[string]any{"status": n}
		}
	}
	switch x.st.Type {
	case "http":
		out = response(out)
	case "once":
		out = first(out)
	}
	if x.st.status != nil {
		if err := m.status(x, out); err != nil {
			x.inst.Output = run.Value{V: out}
			return result{}, err
		}
	}
	if x.st.Type != "load" {
		return result{output: out, set: true}, nil
	}
	v, err := x.loaded(out)
	if err == nil {
		v, err = x.coerced(v)
	}
	if err != nil {
		return result{}, err
	}
	return x.store(v)
}

// loaded interpolates what was loaded, if the step says so. State keys cannot be read in it: the
// text would have to be loaded again once they are known, and may be another one then.
func (x *act) loaded(v any) (any, error) {
	o := expr.Options{Mode: expr.Disabled, OnError: expr.Ignore}
	var err error
	if text, ok := x.st.Inputs["interpolation_mode"].(string); ok {
		if o.Mode, err = expr.ParseMode(text); err != nil {
			return nil, err
		}
	}
	if text, ok := x.st.Inputs["interpolation_errors"].(string); ok {
		if o.OnError, err = expr.ParseOnError(text); err != nil {
			return nil, err
		}
	}
	text, ok := v.(string)
	if !ok || o.Mode == expr.Disabled {
		return v, nil
	}
	e, err := expr.ParseValue(text, o)
	if err != nil {
		return nil, fmt.Errorf("the text that was loaded: %w", err)
	}
	v, err = e.Eval(x.env)
	if key := x.need; key != "" {
		if x.need = ""; o.OnError == expr.Fail {
			return nil, fmt.Errorf(
				"the text that was loaded names the state key %s: read it into a variable before",
				key)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the text that was loaded: %w", err)
	}
	return v, nil
}

// first gives the answer of the service about a period as the language has it.
func first(v any) any {
	in := asMap(v)
	out := map[string]any{"first": in["first"] == true}
	for _, name := range []string{"period", "begins", "ends"} {
		if in[name] != nil {
			out[name] = in[name]
		}
	}
	return out
}

// asMap is nil for what is no map.
func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// bytesKey is how a payload that is no text stands in JSON, alone in a map.
const bytesKey = "$bytes"

// response gives the answer of the http activity the names of the language.
func response(v any) any {
	in, ok := v.(map[string]any)
	if !ok || in["status"] == nil {
		return v
	}
	out := map[string]any{"status_code": in["status"]}
	if in["headers"] != nil {
		out["headers"] = in["headers"]
	}
	switch body := in["body"].(type) {
	case nil:
	case string:
		out["content"] = body
	default:
		if raw, ok := asMap(body)[bytesKey]; ok {
			out["content_bytes"] = raw // in base64
			break
		}
		if text, err := value.Encode(body); err == nil {
			// content is text always; a path into it reads content_json
			out["content"] = string(text)
		}
		out["content_json"] = body
	}
	if d, err := value.Coerce(in["duration"], "double", value.Limits{}); err == nil &&
		in["duration"] != nil {
		out["duration"] = time.Duration(d.(float64) * float64(time.Second)).Round(time.Microsecond)
	}
	return out
}

// status judges exit_code or status_code of an output that has one.
func (m *machine) status(x *act, out any) error {
	name := "exit_code"
	if x.st.Type == "http" {
		name = "status_code"
	}
	code, ok := asMap(out)[name]
	if !ok {
		return nil
	}
	holds, err := x.holds(x.st.status, condition.Value(code))
	if err != nil || holds {
		return err
	}
	shown, _ := value.Text(code)
	message, fields := fmt.Sprintf("%s ended with %s %s", x.st.Type, name, shown),
		map[string]any{name: code}
	for _, said := range []string{"stderr", "content"} {
		text, _ := asMap(out)[said].(string)
		if text = lastLines(text); text != "" {
			fields[said] = text
			message += ": " + text[strings.LastIndexByte(text, '\n')+1:]
		}
	}
	f := run.NewFailure(run.NameStatus, message)
	f.Fields = run.Value{V: fields}
	return f
}

const (
	maxSaidLines = 20
	maxSaidBytes = 2000
)

// lastLines is the end of what a command or a server said, which tells why it failed.
func lastLines(text string) string {
	text = strings.TrimSpace(text)
	if over := len(text) - maxSaidBytes; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-maxSaidLines):], "\n")
}
