package main

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tagOf finds requirement tags in texts: S3-5 or S3-05, TestS3_05, A0-2, P-7, I15, E6.
// docs/requirements_test.go has it too.
var tagOf = regexp.MustCompile(`(?:\b|Test)(?:(A0|S1|S2|S3|P)[-_]0*(\d+)|([IE])([1-9]\d?)\b)`)

// findTags returns the tags that stand in tests and the comments above them, and in scripts that
// tests run, in order.
func findTags(root string, files []source) ([]string, error) {
	var tags []string
	see := func(text string) {
		for _, m := range tagOf.FindAllStringSubmatch(text, -1) {
			if m[1] != "" {
				tags = append(tags, m[1]+"-"+m[2])
			} else {
				tags = append(tags, m[3]+m[4])
			}
		}
	}
	for _, f := range files {
		for _, decl := range f.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !f.test || !isTest(fn) {
				continue
			}
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			see(string(f.text[f.fset.Position(from).Offset:f.fset.Position(fn.End()).Offset]))
		}
	}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".txt" ||
			!strings.Contains(filepath.ToSlash(name), "/testdata/") {
			return err
		}
		text, err := os.ReadFile(name)
		see(string(text))
		return err
	})
	slices.SortFunc(tags, compareTags)
	return slices.Compact(tags), err
}

// isTest leaves out the tests that only list tags.
func isTest(fn *ast.FuncDecl) bool {
	name := fn.Name.Name
	return fn.Recv == nil && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")) &&
		!strings.HasPrefix(name, "TestRequirementsHave")
}

// compareTags orders by family, then by number.
func compareTags(a, b string) int {
	familyA, numberA := split(a)
	familyB, numberB := split(b)
	if familyA != familyB {
		return strings.Compare(familyA, familyB)
	}
	return numberA - numberB
}

func split(tag string) (family string, number int) {
	at := strings.LastIndexByte(tag, '-') + 1
	if at == 0 {
		at = 1
	}
	number, _ = strconv.Atoi(tag[at:])
	return tag[:at], number
}

func printTags(tags []string) {
	sum := sha256.Sum256([]byte(strings.Join(tags, "\n") + "\n"))
	fmt.Printf("== requirement tags in tests\n%d tags, sha256 %x\n\n", len(tags), sum[:8])
}
