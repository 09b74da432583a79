/**
 * Brings to a person what cannot wait until they look: a GPU that is about to go back, and one that has arrived. As a
 * notification with the answers on it, in the browser tab's title, and outside of a page that is not looked at.
 */

import { Notification } from '@jupyterlab/apputils';

import { Desk, refusalText } from './desk';
import { isElsewhere, tellElsewhere, TitleMark } from './elsewhere';
import { Snapshot } from './store';
import { baseName } from './text';
import { LeaseView, NoticeView, SessionView } from './wire';

const ARRIVAL_SHOWN_MS = 8_000;

export class Notices {
  constructor(
    private readonly desk: Desk,
    private readonly isWanted: () => boolean
  ) {
    desk.store.changed.connect(() => this.look(desk.store.snapshot));
    window.addEventListener('focus', () => {
      this.hasArrived = false;
      this.markTitle();
    });
  }

  private look(snapshot: Snapshot): void {
    const heard = snapshot.lists.sessions;
    if (heard === undefined || heard.atMs === this.atMs) {
      return;
    }
    this.atMs = heard.atMs;
    const kernels = heard.view.sessions.filter(session => session.kind === 'kernel');
    this.showNotices(kernels);
    this.showArrivals(kernels);
    this.markTitle();
  }

  private showNotices(sessions: readonly SessionView[]): void {
    const open = new Set<string>();
    for (const session of sessions) {
      for (const lease of session.leases) {
        if (lease.notice !== null) {
          const key = `${lease.id} ${lease.notice.number}`;
          open.add(key);
          if (!this.shown.has(key)) {
            this.shown.set(key, this.isWanted() ? this.show(session, lease, lease.notice) : '');
          }
        }
      }
    }
    for (const [key, id] of this.shown) {
      if (!open.has(key)) {
        Notification.dismiss(id);
        this.shown.delete(key);
      }
    }
  }

  private show(session: SessionView, lease: LeaseView, notice: NoticeView): string {
    const { api, words } = this.desk;
    const at = new Date(Date.now() + notice.due_in_ms);
    const text = words.goesBackAt(baseName(session.name), at.toLocaleTimeString(words.language));
    tellElsewhere(text, lease.id);
    return Notification.emit(text, 'warning', {
      autoClose: false,
      actions: [
        {
          label: words.keep,
          displayType: 'accent',
          callback: () => this.attempt(() => api.keep(lease))
        },
        { label: words.release, callback: () => this.attempt(() => api.release(lease)) }
      ]
    });
  }

  /** Those that waited when last looked at, and hold now what they waited for. */
  private showArrivals(sessions: readonly SessionView[]): void {
    const waited = this.waiting;
    this.waiting = new Set(
      sessions.flatMap(session => session.requests.map(request => request.id))
    );
    for (const session of sessions) {
      if (
        session.leases.some(lease => waited.has(lease.id) && !this.waiting.has(lease.id)) &&
        this.isWanted()
      ) {
        const text = this.desk.words.gotGpu(baseName(session.name));
        this.hasArrived = isElsewhere();
        tellElsewhere(text, session.id);
        Notification.success(text, { autoClose: ARRIVAL_SHOWN_MS });
      }
    }
  }

  private attempt(action: () => Promise<void>): void {
    const { store, words } = this.desk;
    action()
      .catch((error: unknown) =>
        Notification.error(refusalText(error, words), { autoClose: false })
      )
      .finally(() => void store.refresh('sessions'));
  }

  private markTitle(): void {
    const { words } = this.desk;
    if (this.shown.size > 0) {
      this.title.set(`⏳ ${words.titleMark}`);
    } else {
      this.title.set(this.hasArrived ? `✓ ${words.titleArrived}` : null);
    }
  }

  private readonly title = new TitleMark();
  /** The notification of each open notice. */
  private readonly shown = new Map<string, string>();
  private waiting = new Set<string>();
  /** A GPU came, and nobody has looked since. */
  private hasArrived = false;
  private atMs = 0;
}
