package broker_test

import (
	"strings"
	"testing"
)

// Two ids that differ in a byte that is not UTF-8 are none: no verb takes them.
func TestIDsAreUTF8(t *testing.T) { // E15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(`{"workflowId":"x","type":"order"}`)
		for verb, body := range map[string]string{
			"start":     "{\"workflowId\":\"x\xff\",\"type\":\"order\"}",
			"signal":    "{\"workflowId\":\"x\xff\",\"name\":\"s\"}",
			"terminate": "{\"workflowId\":\"x\xff\"}",
			"describe":  "{\"workflowId\":\"x\xfe\"}",
			"tasklist":  "{\"list\":\"x\xfe\"}",
		} {
			answer := f.api(verb, body)
			e, _ := answer["error"].(map[string]any)
			if message, _ := e["message"].(string); e["code"] != "invalid_argument" || !strings.Contains(message, "is not UTF-8") {
				t.Errorf("%s: got %v, want a refusal of what is not UTF-8", verb, answer)
			}
		}
	})
}
