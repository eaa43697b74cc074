package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generators write what a line <!-- generated: NAME ARGUMENTS --> of a template stands for.
var generators = map[string]func(t *testing.T, arguments []string) string{
	"tokens":              plain(tokens),
	"subjects":            plain(subjects),
	"wildcards":           plain(wildcards),
	"names":               plain(names),
	"streams":             plain(streams),
	"units":               plain(units),
	"payloads":            plain(payloadTable),
	"record-words":        plain(recordWords),
	"record-events":       plain(recordEvents),
	"api":                 plain(api),
	"namespace-api":       plain(namespaceAPI),
	"family":              family,
	"code":                plain(codes),
	"cause":               plain(causes),
	"sentinel":            sentinel,
	"events":              plain(events),
	"event-attributes":    plain(eventAttributes),
	"decisions":           plain(decisions),
	"decision-attributes": plain(decisionAttributes),
	"limits":              plain(limits),
	"metrics":             plain(metricTable),
	"step-types":          plain(flowStepTypes),
}

func plain(fn func(*testing.T) string) func(*testing.T, []string) string {
	return func(t *testing.T, _ []string) string { return fn(t) }
}

const (
	templates = "reference/templates/*.md.tmpl"
	madeBy    = "<!-- generated: by go test ./docs -update, from the code and templates/"
)

var directive = regexp.MustCompile(`(?m)^<!-- generated: ([a-z-]+)((?: [^ \n]+)*) -->$`)

// TestReference compares the pages of the reference with what the templates and the code make of them.
func TestReference(t *testing.T) {
	pages, used := map[string]string{}, map[string]bool{}
	files, err := filepath.Glob(templates)
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v and %v, want templates", files, err)
	}
	for _, file := range files {
		page := strings.TrimSuffix(filepath.Base(file), ".tmpl")
		pages[page] = madeBy + filepath.Base(file) + " -->\n\n" + directive.ReplaceAllStringFunc(read(t, file), func(line string) string {
			m := directive.FindStringSubmatch(line)
			if generators[m[1]] == nil {
				t.Fatalf("%s: nothing generates %q", file, m[1])
			}
			used[m[1]] = true
			return strings.TrimSpace(generators[m[1]](t, strings.Fields(m[2])))
		})
	}
	for name := range generators {
		if !used[name] {
			t.Errorf("no template has %q", name)
		}
	}
	resolve(t, pages)
	there, err := filepath.Glob("reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if page := filepath.Base(file); pages[page] == "" && strings.HasPrefix(read(t, file), madeBy) {
			t.Errorf("%s has no template: remove it", file)
		}
	}
	for page, text := range pages {
		compare(t, "reference/"+page, text)
	}
}

// compare writes a page, or demands that it is what the code says.
func compare(t *testing.T, file, now string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(read(t, file), now); diff != "" {
		t.Errorf("%s does not say what the code says; run: go test ./docs -update\n(-file +code)\n%s", file, diff)
	}
}

var (
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	anchorLink = regexp.MustCompile(`\]\(#([^)]+)\)`)
)

// anchors are the names by which links lead to the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// resolve leads each link to a heading that is on another page of the reference there.
func resolve(t *testing.T, pages map[string]string) {
	homes := map[string][]string{}
	for page, text := range pages {
		for _, a := range anchors(text) {
			homes[a] = append(homes[a], page)
		}
	}
	for page, text := range pages {
		pages[page] = anchorLink.ReplaceAllStringFunc(text, func(link string) string {
			to := homes[anchorLink.FindStringSubmatch(link)[1]]
			switch {
			case slices.Contains(to, page):
				return link
			case len(to) != 1:
				t.Errorf("%s: the link %s leads to %d pages, %v, want one", page, link, len(to), to)
				return link
			}
			return strings.Replace(link, "(", "("+to[0], 1)
		})
	}
}

// reference is the text of all pages of the reference.
func reference(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(read(t, file))
	}
	return all.String()
}
