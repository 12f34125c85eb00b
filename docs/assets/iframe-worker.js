// Search in pages that are opened from a folder: browsers refuse workers there, so a hidden
// frame of the same page does their work. On a server nothing changes.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = async (...scripts) => {
        for (const script of scripts) await this.load(new URL(script, own));
      };
      const own = new URL(address, location.href); // a worker's scripts lie beside it
      this.ready = this.load(own);
    }

    load(address) {
      const script = this.inside.document.createElement("script");
      script.src = address;
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.append(script);
      });
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
