// Mounts one layer as the stargz snapshotter does, until its input ends.
//
//	main REFERENCE LAYER-DIGEST TABLE-DIGEST MOUNTPOINT CACHE-FOLDER
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/containerd/containerd/reference"
	"github.com/containerd/containerd/remotes/docker"
	"github.com/containerd/stargz-snapshotter/fs"
	"github.com/containerd/stargz-snapshotter/fs/config"
	"github.com/containerd/stargz-snapshotter/fs/source"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func hosts(spec reference.Spec) ([]docker.RegistryHost, error) {
	client := &http.Client{Transport: http.DefaultTransport} // the library asks the client for its transport
	plain := docker.WithPlainHTTP(docker.MatchLocalhost)
	return docker.ConfigureDefaultRegistries(plain, docker.WithClient(client))(spec.Hostname())
}

func main() {
	settings := config.Config{NoBackgroundFetch: true, NoPrometheus: true}
	settings.ForceSingleRangeMode = true // the server of the test knows no other
	settings.DirectoryCacheConfig.Direct = true
	system, err := fs.NewFilesystem(os.Args[5], settings, fs.WithGetSources(source.FromDefaultLabels(hosts)))
	must(err)
	labels := map[string]string{
		"containerd.io/snapshot/remote/stargz.reference": os.Args[1],
		"containerd.io/snapshot/remote/stargz.digest":    os.Args[2],
		"containerd.io/snapshot/remote/stargz.layers":    os.Args[2],
		"containerd.io/snapshot/stargz/toc.digest":       os.Args[3],
	}
	must(system.Mount(context.Background(), os.Args[4], labels))
	fmt.Println("mounted")
	_, err = io.ReadAll(os.Stdin)
	must(err)
	must(system.Unmount(context.Background(), os.Args[4]))
}
