// Command drover-vet is for go vet: go vet -vettool=$(which drover-vet) ./... See package vet.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/droverhq/drover/vet"
)

func main() { unitchecker.Main(vet.Analyzer) }
