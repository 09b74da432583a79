/** Reaches somebody who looks at something else: by a mark in the tab's title, and, where they allowed it, by the browser. */

export function isElsewhere(): boolean {
  return document.hidden || !document.hasFocus();
}

/** The browser's own notification. One with the same tag takes the place of an earlier one. */
export function tellElsewhere(text: string, tag: string): void {
  if (isElsewhere() && 'Notification' in window && Notification.permission === 'granted') {
    const told = new Notification(text, { tag });
    told.onclick = () => window.focus();
  }
}

/** Whether the browser has not been told yet what to do. */
export function mayAskToAllow(): boolean {
  return 'Notification' in window && Notification.permission === 'default';
}

/** The browser asks the person; only a click may make it. */
export async function allowElsewhere(): Promise<void> {
  if ('Notification' in window) {
    await Notification.requestPermission();
  }
}

/** A few words before the page's title. JupyterLab sets the title anew at will, so they are put back each time. */
export class TitleMark {
  constructor() {
    new MutationObserver(() => this.put()).observe(document.head, {
      childList: true,
      subtree: true
    });
  }

  /** Null takes them away. */
  set(words: string | null): void {
    const last = this.mark;
    this.mark = words === null ? '' : `${words} · `;
    if (this.mark !== last) {
      this.put(last);
    }
  }

  private put(last = this.mark): void {
    const { title } = document;
    const plain = last !== '' && title.startsWith(last) ? title.slice(last.length) : title;
    if (title !== this.mark + plain) {
      document.title = this.mark + plain;
    }
  }

  private mark = '';
}
