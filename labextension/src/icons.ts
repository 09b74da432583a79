import { LabIcon } from '@jupyterlab/ui-components';

// A graphics card with two fans, on the 16-pixel grid of JupyterLab's side bars.
const CARD = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">
  <g class="jp-icon3 jp-icon-selectable" fill="#616161">
    <path d="M.8 2.5h1.3v11H.8z"/>
    <path fill-rule="evenodd" d="M3 4h11a1.2 1.2 0 0 1 1.2 1.2v5.1A1.2 1.2 0 0 1 14 11.5H3zm.1 1.2v5.1h10.8V5.2z"/>
    <path fill-rule="evenodd" d="M6 5.7a2.05 2.05 0 1 1 0 4.1 2.05 2.05 0 0 1 0-4.1zm0 1.15a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8zM11 5.7a2.05 2.05 0 1 1 0 4.1 2.05 2.05 0 0 1 0-4.1zm0 1.15a.9.9 0 1 0 0 1.8.9.9 0 0 0 0-1.8z"/>
    <path d="M4.5 12.2h5.5v1.3H4.5z"/>
  </g>
</svg>`;

export const gpuIcon = new LabIcon({ name: 'jupyter_gpubroker:gpu', svgstr: CARD });
