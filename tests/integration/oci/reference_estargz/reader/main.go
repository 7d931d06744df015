// What the reference implementation of eStargz makes of a layer.
//
//	main LAYER TABLE-DIGEST [REWRITTEN]
//
// Opens LAYER, verifies its table, reads every file through it and prints a line for each: size, SHA-256, name.
// Then it writes the same tar to REWRITTEN, as a layer of its own making.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"os"
	"path"

	"github.com/containerd/stargz-snapshotter/estargz"
	digest "github.com/opencontainers/go-digest"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func show(layer *estargz.Reader, verifier estargz.TOCEntryVerifier, folder *estargz.TOCEntry, at string) {
	folder.ForeachChild(func(name string, entry *estargz.TOCEntry) bool {
		place := path.Join(at, name)
		switch entry.Type {
		case "dir":
			show(layer, verifier, entry, place)
		case "reg":
			if entry.Size == 0 {
				break // the library makes no reader for nothing
			}
			content, err := layer.OpenFile(place)
			must(err)
			sum := sha256.New()
			size, err := io.Copy(sum, content)
			must(err)
			for at := int64(0); at < entry.Size; {
				chunk, ok := layer.ChunkEntryForOffset(place, at)
				if !ok {
					log.Fatalf("%s has no chunk at %d", place, at)
				}
				check, err := verifier.Verifier(chunk)
				must(err)
				_, err = io.Copy(check, io.NewSectionReader(content, chunk.ChunkOffset, chunk.ChunkSize))
				must(err)
				if !check.Verified() {
					log.Fatalf("%s at %d is not what the table says", place, at)
				}
				at += chunk.ChunkSize
			}
			fmt.Printf("%d %x %s\n", size, sum.Sum(nil), place)
		}
		return true
	})
}

func main() {
	file, err := os.Open(os.Args[1])
	must(err)
	facts, err := file.Stat()
	must(err)
	blob := io.NewSectionReader(file, 0, facts.Size())
	layer, err := estargz.Open(blob)
	must(err)
	verifier, err := layer.VerifyTOC(digest.Digest(os.Args[2]))
	must(err)
	root, ok := layer.Lookup("")
	if !ok {
		log.Fatal("the table has no root")
	}
	show(layer, verifier, root, "")

	if len(os.Args) < 4 {
		return
	}
	tar, err := estargz.Unpack(blob, new(estargz.GzipDecompressor))
	must(err)
	target, err := os.Create(os.Args[3])
	must(err)
	writer := estargz.NewWriter(target)
	must(writer.AppendTar(tar))
	_, err = writer.Close()
	must(err)
	must(target.Close())
}
