/** One value that several parts of the screen look at and set. */

import { Signal } from '@lumino/signaling';

export class Switch<Value> {
  constructor(private value: Value) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.changed.connect(listener);
    return () => void this.changed.disconnect(listener);
  };

  readonly getSnapshot = (): Value => this.value;

  set(value: Value): void {
    this.value = value;
    this.changed.emit();
  }

  private readonly changed = new Signal<this, void>(this);
}
