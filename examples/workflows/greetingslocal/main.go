// Command greetingslocal puts a greeting together by steps: short work that the worker of the
// workflow does itself, without the way to an activity. What a step returns is stored before the
// next one begins, so a worker that takes over goes on after it. Run it beside "drover dev", and
// start it with
//
//	drover start greetingslocal --input '"fr"' --wait
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

var (
	Unspoken  = contract.Fault[string]("unspoken") // its details are the language
	Greetings = contract.Workflow[string, string]("greetingslocal")
)

var words = map[string]string{"en": "Hello", "fr": "Bonjour"}

// greetings is the workflow. A step may do what it likes; the code around it may not.
func greetings(ctx workflow.Context, language string) (string, error) {
	word, err := workflow.Do(ctx, "word", func(context.Context) (string, error) {
		if word := words[language]; word != "" {
			return word, nil
		}
		return "", Unspoken.With(language)
	}, workflow.Quick())
	if err != nil {
		return "", err
	}
	name, err := workflow.Do(ctx, "name", func(context.Context) (string, error) {
		return os.Hostname()
	}, workflow.StepRetry(schemas.RetryPolicy{MaximumAttempts: 5}))
	if err != nil {
		return "", err
	}
	return workflow.Do(ctx, "say", func(ctx context.Context) (string, error) {
		return say(ctx, workflow.StepInfo(ctx).Key, word+", "+name+"!")
	})
}

// say stands for a service. It is given a key, which is the same if the step is done twice.
func say(ctx context.Context, key, text string) (string, error) {
	fmt.Println(key, text)
	return text, ctx.Err()
}

func main() {
	ctx := context.Background()
	client, err := drover.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	w := client.Worker(nil)
	workflow.Implement(w, Greetings, greetings, nil)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
