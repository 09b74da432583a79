/** The notebook that the person is at, and its kernel. */

import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { baseName } from './text';

export interface Current {
  readonly path: string;
  readonly name: string;
  readonly kernelId: string | null;
}

export class CurrentNotebook {
  constructor(tracker: INotebookTracker | null) {
    tracker?.currentChanged.connect((_, panel) => this.follow(panel));
    this.follow(tracker?.currentWidget ?? null);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.changed.connect(listener);
    return () => void this.changed.disconnect(listener);
  };

  /** Null where no notebook is open. The same object as long as nothing changes. */
  readonly getSnapshot = (): Current | null => this.current;

  /** Write what one has changed; a batch job reads the file. */
  async save(): Promise<void> {
    if (this.panel?.context.model.dirty) {
      await this.panel.context.save();
    }
  }

  private follow(panel: NotebookPanel | null): void {
    this.panel?.sessionContext.kernelChanged.disconnect(this.look);
    this.panel?.context.pathChanged.disconnect(this.look);
    this.panel = panel;
    panel?.sessionContext.kernelChanged.connect(this.look);
    panel?.context.pathChanged.connect(this.look);
    this.look();
  }

  private readonly look = (): void => {
    this.current = this.panel === null ? null : currentOf(this.panel);
    this.changed.emit();
  };

  private readonly changed = new Signal<this, void>(this);
  private panel: NotebookPanel | null = null;
  private current: Current | null = null;
}

export function currentOf(panel: NotebookPanel): Current {
  const path = panel.context.localPath;
  const kernelId = panel.sessionContext.session?.kernel?.id ?? null;
  return { path, name: baseName(path), kernelId };
}
