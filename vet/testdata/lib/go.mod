module lib.example

go 1.26
